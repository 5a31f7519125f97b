"""Formats of texts are those that Kubernetes enforces in custom resources."""

import pytest

from kubewire.formats import format_test

GOOD = {
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "byte": ["aGVsbG8=", "aGk=", "YWJj"],
    "cidr": ["10.0.0.0/8", "10.1.2.3/8", "fd00::/64"],
    "creditcard": ["4111 1111 1111 1111", "378282246310005"],
    "date": ["2026-02-28", "2024-02-29"],
    "date-time": ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.123+02:00"],
    "duration": ["1h30m", "0", "-1.5h", "22ns", "1h ", "2 days", "1 week"],
    "email": ["ray@example.com", "Ray <ray@example.com>", '"r a"@example.com'],
    "hexcolor": ["#fff", "00ff00"],
    "hostname": ["example.com", "a", "1host", "münchen.example", "x.y-z.co"],
    "ipv4": ["10.0.0.1"],
    "ipv6": ["::1", "fd00::1", "::ffff:10.0.0.1"],
    "isbn": ["0321751043", "978-0321751041"],
    "isbn10": ["0-321-75104-3"],
    "isbn13": ["978-0321751041"],
    "k8s-long-name": ["a.b-c"],
    "k8s-short-name": ["a-b"],
    "mac": ["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab", "01:23:45:67:89:ab:cd:ef"],
    "password": ["", "anything\n"],
    "rgbcolor": ["rgb(0, 128,255)"],
    "ssn": ["111-22-3333", "111223333"],
    "uri": ["https://example.com/a?b=c", "/path", "urn:isbn:1", "http://[::1]:80/"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
    "uuid3": ["123e4567-e89b-32d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000"],
    "uuid5": ["123e4567-e89b-52d3-a456-426614174000"],
}

BAD = {
    "bsonobjectid": ["507f1f77bcf86cd79943901", "zzzf1f77bcf86cd799439011"],
    "byte": ["", "aGVsbG8", "a_b="],
    "cidr": ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "x/8"],
    "creditcard": ["4111 1111 1111 1112", "1"],
    "date": ["2026-02-29", "2026-13-01", "2026-2-3", "2026-02-28\n", "٢٠٢٦-02-28"],
    "date-time": [
        "2026-02-28",
        "2026-02-28T24:00:00Z",
        "2026-02-28T10:00:00",
        "2026-02-30T10:00:00Z",
        "soon",
    ],
    "duration": ["", "h", "1", "1 parsec"],
    "email": ["ray", "ray@", "@example.com", "a b@c", "Ray <ray>"],
    "hexcolor": ["#ff", "#gggggg"],
    "hostname": ["", "-a", "a-", "a..b", "a_b", "x.y", "a" * 64, "a." * 128 + "com"],
    "ipv4": ["10.0.0", "256.0.0.1", "::1"],
    "ipv6": ["10.0.0.1", "fd00::1%eth0", ":"],
    "isbn": ["0321751044"],
    "isbn10": ["978-0321751041"],
    "isbn13": ["0321751043"],
    "k8s-long-name": ["A", "a..b"],
    "k8s-short-name": ["a.b"],
    "mac": ["01:23:45:67:89", "01:23-45:67:89:ab"],
    "rgbcolor": ["rgb(0,0,256)", "0,0,0"],
    "ssn": ["111-22-333"],
    "uri": ["", "relative", "http://a b", "http://h:port/", "/bad%zz"],
    "uuid": ["123e4567-e89b-12d3-a456-42661417400", "g23e4567-e89b-12d3-a456-426614174000"],
    "uuid3": ["123e4567-e89b-42d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-c456-426614174000"],
    "uuid5": ["123e4567-e89b-42d3-a456-426614174000"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in GOOD.items() for text in texts])
def test_fits(name, text):
    test = format_test(name)
    assert test is not None
    assert test(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_does_not_fit(name, text):
    test = format_test(name)
    assert test is not None
    assert not test(text)


def test_hyphens_in_the_name_of_a_format_do_not_matter():
    assert format_test("datetime") is format_test("date-time") is not None


@pytest.mark.parametrize("name", ["int32", "unheard-of", ""])
def test_other_formats_are_no_formats_of_texts(name):
    assert format_test(name) is None
