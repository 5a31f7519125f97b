"""The page about the states says all that the table says."""

from eagleray.rayjob.diagram import states_page
from eagleray.rayjob.states import STATES


def test_the_page_has_every_state_with_its_ways_and_deadlines():
    page = states_page()
    rows = {line.split("|")[1].strip(" *"): line for line in page.splitlines() if line.startswith("| **")}
    assert list(rows) == [name or "New" for name in STATES]
    for name, state in STATES.items():
        row = rows[name or "New"]
        assert state.waits_for in row
        assert all(one.when in row for one in state.exits)
        assert all(timer.name in row for timer in state.deadlines)
        assert state.without_deadline in row


def test_the_diagram_has_every_way():
    diagram = states_page().partition("```mermaid\n")[2].partition("```")[0]
    for name, state in STATES.items():
        for one in state.exits:
            for to in one.to:
                assert f"    {name or 'New'} --> {to or 'New'}: " in diagram
                assert one.when in diagram
    assert "Running --> Retrying: " in diagram
    assert "Waiting --> Retrying: " not in diagram
    assert {"    Complete --> [*]", "    Failed --> [*]"} <= set(diagram.splitlines())
