"""Which names of images mean whatever is newest, so that they are always pulled."""

import pytest

from kubereef.kinds.behaviours.image_names import is_latest

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("image", "newest"),
    [
        ("nginx", True),
        ("nginx:latest", True),
        ("nginx:1.27", False),
        (f"nginx@{DIGEST}", False),
        (f"nginx:latest@{DIGEST}", True),
        ("library/nginx", True),
        ("registry.example.com/team/app", True),
        ("registry.example.com:5000/team/app", True),
        ("registry.example.com:5000/team/app:v1", False),
        ("localhost/app", True),
        ("[::1]:5000/app", True),
        ("UPPER/app", True),
        ("app/UPPER", False),
        ("Upper.example.com/app", True),
        ("no spaces", False),
        ("a//b", False),
        ("", False),
        ("0a" * 32, False),
        ("a" * 256, False),
        ("a" * 5000, False),
    ],
)
def test_the_newest_is_meant_by_the_tag_latest_or_by_no_tag(image, newest):
    assert is_latest(image) is newest
