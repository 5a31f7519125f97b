"""Metrics and the text that Prometheus reads."""

import pytest

from eagleray.runtime.metrics import Family, Registry, Sample


def test_the_text_has_help_type_and_series_sorted_by_name():
    registry = Registry()
    requests = registry.counter("requests_total", "Requests", ("verb", "code"))
    registry.gauge("depth", "Keys\nthat wait").set(3)
    requests.add("get", "200")
    requests.add("get", "200", amount=2)
    requests.add("put", "409")
    assert registry.render().splitlines() == [
        "# HELP depth Keys\\nthat wait",
        "# TYPE depth gauge",
        "depth 3",
        "# HELP requests_total Requests",
        "# TYPE requests_total counter",
        'requests_total{verb="get",code="200"} 3',
        'requests_total{verb="put",code="409"} 1',
    ]


def test_a_histogram_counts_into_buckets_that_include_their_bound():
    registry = Registry()
    seconds = registry.histogram("took_seconds", "Time", ("verb",), (0.1, 1, 10))
    for value in (0.05, 0.1, 0.5, 99):
        seconds.observe(value, "get")
    assert registry.render().splitlines()[2:] == [
        'took_seconds_bucket{verb="get",le="0.1"} 2',
        'took_seconds_bucket{verb="get",le="1"} 3',
        'took_seconds_bucket{verb="get",le="10"} 3',
        'took_seconds_bucket{verb="get",le="+Inf"} 4',
        'took_seconds_sum{verb="get"} 99.65',
        'took_seconds_count{verb="get"} 4',
    ]
    assert seconds.count("get") == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2.5, "2.5"),
        (1e-8, "1e-08"),
        (1e300, "1e+300"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value, text):
    registry = Registry()
    registry.gauge("g", "").set(value)
    assert registry.render().splitlines()[-1] == f"g {text}"


def test_values_of_labels_are_escaped():
    registry = Registry()
    registry.gauge("g", "", ("name",)).set(1, 'a"b\\c\nd')
    assert registry.render().splitlines()[-1] == 'g{name="a\\"b\\\\c\\nd"} 1'


def test_a_series_can_exist_before_anything_happened_and_go_with_its_object():
    registry = Registry()
    errors = registry.counter("errors_total", "", ("controller",))
    errors.start("raycluster")
    assert 'errors_total{controller="raycluster"} 0' in registry.render()
    errors.add("raycluster")
    errors.start("raycluster")
    assert errors.value("raycluster") == 1
    errors.remove("raycluster")
    errors.remove("never was")
    assert "raycluster" not in registry.render()


def test_the_series_of_a_histogram_goes_with_its_object():
    registry = Registry()
    seconds = registry.histogram("s", "", ("name",), (1,))
    seconds.observe(1, "c")
    seconds.remove("c")
    assert "name" not in registry.render()


def test_families_can_be_computed_at_every_scrape():
    registry = Registry()
    clusters = ["a"]
    registry.collect(
        lambda: [Family("info", "gauge", "x", [Sample("", (("name", name),), 1) for name in clusters])]
    )
    assert 'info{name="a"} 1' in registry.render()
    clusters[:] = ["b"]
    assert 'info{name="a"}' not in registry.render()
    assert 'info{name="b"} 1' in registry.render()


def test_a_counter_never_shrinks():
    with pytest.raises(ValueError, match="only grows"):
        Registry().counter("c", "").add(amount=-1)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="labels"):
        Registry().counter("c", "", ("a",)).add("x", "y")


def test_a_name_is_given_once():
    registry = Registry()
    registry.counter("c", "")
    with pytest.raises(ValueError, match="exists already"):
        registry.gauge("c", "")
