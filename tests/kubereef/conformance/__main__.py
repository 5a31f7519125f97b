"""`python -m tests.kubereef.conformance [part of a name …]`: what differs from a real API server, step by step."""

import sys

from tests.kubereef.conformance.judging import in_process
from tests.kubereef.conformance.scenarios import load, names


def main(wanted: list[str]) -> int:
    """Print the steps that differ; return 1 if there are any."""
    equal = total = 0
    for name in names():
        if wanted and not any(part in name for part in wanted):
            continue
        scenario = load(name)
        try:
            judged = in_process(scenario)
        except Exception as broken:  # noqa: BLE001 - a report goes on with the next scenario
            total += len(scenario.answers)
            print(f"{name}: could not be run: {type(broken).__name__}: {broken}")
            continue
        good = sum(not step.differences for step in judged)
        equal, total = equal + good, total + len(judged)
        print(f"{name}: {good} of {len(judged)}")
        for step in judged:
            if step.differences:
                print(f"  {step.name} ({step.status})")
                print("".join(f"      {difference}\n" for difference in step.differences[:10]), end="")
    print(f"{equal} of {total} steps equal")
    return equal != total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
