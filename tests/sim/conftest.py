"""Simulations run under virtual time, and say at the end how many faults they have met."""

import pytest

from tests.sim.process import PausableLoop

FAULTS = "faults met"


def pytest_asyncio_loop_factories(config, item):
    return {"virtual": PausableLoop}


@pytest.fixture
def tell_faults(record_property):
    """Have a line about a test's faults printed at the end of the session."""

    def tell(line):
        record_property(FAULTS, line)

    return tell


def pytest_terminal_summary(terminalreporter):
    told = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == FAULTS
    ]
    if told:
        terminalreporter.section("faults met")
        for line in sorted(told):
            terminalreporter.line(line)
