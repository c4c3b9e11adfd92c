"""Does the estimate of a course suite hold? Entries of it at a scale, planned and then run.

    python -m benchmarks.course.estimates SUITE SCALE POSITION…

POSITION counts the entries of `cases` from 0; each one is a block. Prints for each block the time
that `hostbench plan` estimates and the time that `hostbench run` then takes, in seconds, from the
start of the first trial to the end of the last one, without the gate.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from hostbench.plan.suite import find_suite, load_suite


def block(suite: str, scale: str, position: int) -> dict[str, Any]:
    """Return a suite of one entry, without an idle gate."""
    found = load_suite(find_suite(suite)).scaled(scale)
    alone = found.model_copy(update={"cases": (found.cases[position],), "published": None})
    tree: dict[str, Any] = alone.model_dump(mode="json", exclude_defaults=True, exclude={"scale"})
    return {**tree, "idle": {"policy": "force"}}


def output_of(*arguments: str | Path) -> dict[str, Any]:
    """Return the JSON document that a hostbench command prints."""
    command = [sys.executable, "-m", "hostbench", *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def taken_s(document: dict[str, Any]) -> float:
    """Return the seconds from the start of the first trial to the end of the last one, peers
    included."""
    trials = [
        trial
        for case in document["cases"]
        for trial in (*case["trials"], *(one for peer in case["peers"] for one in peer["trials"]))
    ]
    last = max(trial["time_unix_s"] + trial["wall_s"] for trial in trials)
    first: float = min(trial["time_unix_s"] for trial in trials)
    return float(last - first)


def main() -> None:
    """Print one line for each block."""
    suite, scale, *positions = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "block.yaml"
        for position in map(int, positions):
            tree = block(suite, scale, position)
            path.write_text(yaml.safe_dump(tree))
            estimate = output_of("plan", path)["estimate"]
            document = output_of("run", path, "--results", Path(directory) / "results")
            low_s, taken = estimate["low_s"], taken_s(document)
            entry = tree["cases"][0]["workload"]
            print(
                f"{suite} {scale} {position:3} {entry:22} estimate {low_s:8.1f} s to "
                f"{estimate['high_s']:8.1f} s, taken {taken:8.1f} s, {low_s / taken:.2f}"
            )


if __name__ == "__main__":
    main()
