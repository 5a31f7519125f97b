"""Every scenario is answered as a real API server and its controllers answered it, but for what is listed."""

import pytest
import yaml

from tests.kubereef.conformance.expectations import FILE, disagreements, expected
from tests.kubereef.conformance.judging import in_process, over_https
from tests.kubereef.conformance.scenarios import load, names


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A directory whose certificates all servers of this module share: making them takes longer than a scenario."""
    return tmp_path_factory.mktemp("kubereef")


@pytest.mark.parametrize("name", names())
def test_in_process_it_is_answered_as_by_kubernetes(name):
    problems = disagreements(in_process(load(name)), expected(name))
    assert not problems, "\n".join(problems)


# With controllers a scenario waits for minutes of real time, which the other test spends in virtual time.
@pytest.mark.parametrize(
    "name",
    [name for name in names() if not load(name).needs_controllers and not expected(name).all_later],
)
def test_over_https_it_is_answered_as_by_kubernetes(name, certificates):
    problems = disagreements(over_https(load(name), certificates), expected(name))
    assert not problems, "\n".join(problems)


def test_what_is_expected_to_differ_names_scenarios_that_exist():
    content = yaml.safe_load(FILE.read_text())
    listed = {scenario for entries in content["later"].values() for scenario in entries}
    assert listed | set(content["differences"]) <= set(names())


def test_every_difference_has_a_reason():
    content = yaml.safe_load(FILE.read_text())
    for steps in content["differences"].values():
        for step, reason in steps.items():
            assert isinstance(reason, str), step
            assert len(reason.split()) > 3, step
