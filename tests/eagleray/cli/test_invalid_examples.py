"""What `eagleray validate` prints for the smallest bad manifest of every rule."""

from pathlib import Path

import pytest

from eagleray.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "data" / "invalid"

# Rules that only an object which never passed a schema can break: the schema speaks in their place.
SCHEMA_SPEAKS = {
    "raycluster-u1": "schema-enum",
    "raycronjob-c4": "schema",
    "rayjob-r1": "schema",
    "rayjob-r2": "schema",
    "rayjob-r3": "schema",
    "rayjob-v7": "schema",
    "rayjob-v17": "schema",
    "rayservice-v5": "schema",
}
# An embedded object's problems keep the names of its own rules.
EMBEDDED = {"rayjob-v14": "raycluster-4e", "rayservice-v2": "raycluster-4e", "raycronjob-c6": "rayjob-v9"}
# Defaults fill in what this rule misses, so it guards objects that never were defaulted.
DEFAULTS_MEND = {"raycluster-4b"}


@pytest.mark.parametrize("example", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_command_tells_the_rule_and_its_place(example, capsys):
    manifest = EXAMPLES / f"{example}.yaml"
    first = manifest.read_text().partition("\n")[0]
    gates = first.removeprefix("# gates: ") if first.startswith("# gates: ") else ""
    status = main(["validate", f"--feature-gates={gates}", str(manifest)])
    lines = capsys.readouterr().out.splitlines()[:-1]
    if example in DEFAULTS_MEND:
        assert (status, lines) == (0, [])
        return
    rules = [line.rpartition("[")[2].rstrip("]") for line in lines]
    assert {**SCHEMA_SPEAKS, **EMBEDDED}.get(example, example) in rules
    assert status == (0 if all(": warning: " in line for line in lines) else 1)
    for expected in (EXAMPLES / f"{example}.txt").read_text().splitlines():
        if example not in SCHEMA_SPEAKS:
            assert any(f": {expected} [" in line for line in lines), expected
