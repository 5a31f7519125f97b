"""How long `eagleray` takes to start, to validate and to explain, in units of starting bare Python.

The commands take turns, so that all of them meet the same noise, and each is represented by its fastest run: noise only
ever adds. The bounds are what users were promised; on a quiet machine help takes about 2 and all samples about 9.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from eagleray.gates import GATES

ROUNDS = 20
REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY.parent / "shared" / "data" / "upstream" / "samples"


class Ratio(NamedTuple):
    """A measured ratio and the bound it should keep."""

    name: str
    value: float
    at_most: float

    @property
    def within(self) -> bool:
        return self.value <= self.at_most

    def text(self) -> str:
        verdict = "ok" if self.within else "TOO SLOW"
        return f"{self.name:<44} {self.value:6.2f} x bare Python (at most {self.at_most:g})  {verdict}"


def measure() -> list[Ratio]:
    """Return the ratios of start-up and validation to starting bare Python."""
    eagleray = str(Path(sys.executable).parent / "eagleray")
    manifests = SAMPLES if SAMPLES.is_dir() else REPOSITORY / "examples"
    gates = ",".join(f"{gate}=true" for gate in GATES)
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "help": [eagleray, "--help"],
        "validate": [eagleray, "validate", f"--feature-gates={gates}", str(manifests)],
        "explain": [eagleray, "explain", "raycluster.spec.workerGroupSpecs"],
    }
    # As for a user: compiled once, then read from the cache. The first round fills it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    fastest = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    bare = fastest["bare"]
    files = len(list(manifests.glob("*.yaml")))
    return [
        Ratio("eagleray --help", fastest["help"] / bare, 4),
        Ratio(f"eagleray validate, {files} files of {manifests.name}/", fastest["validate"] / bare, 12),
        Ratio("eagleray explain", fastest["explain"] / bare, 12),
    ]
