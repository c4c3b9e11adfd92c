"""Two identical runs of the memory cases of a suite: how far their medians are apart.

usage: python -m benchmarks.mem.repeatability [SUITE] (default: quick)

Each case should differ by 5 % at most, or a verdict has to say that its trials are noisy. A case
with any other verdict shows nothing and has to be repeated.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figures import Entry, Value, save
from benchmarks.pairs import print_header, print_row
from benchmarks.programs import ROOT
from benchmarks.quiet import wait_until_idle
from hostbench.model.result import CaseResult, ResultDocument, Verdict
from hostbench.plan.suite import find_suite

RUNS = 2
DIFFERENCE_MOST = 0.05
ANSWERS = {True: "holds", False: "**misses**", None: "disturbed: repeat"}
HOSTBENCH = ROOT / ".venv" / "bin" / "hostbench"


def memory_part(suite: str, directory: Path) -> Path:
    """Write the memory cases of a suite to a suite of their own, without peers, and return its
    path."""
    tree = yaml.safe_load(find_suite(suite).read_text())
    cases = [case for case in tree["cases"] if case["workload"].startswith("mem.")]
    if not cases:
        raise SystemExit(f"the suite {suite} has no case of memory: give another one")
    for case in cases:
        case.pop("peers", None)
    path = directory / "memory.yaml"
    path.write_text(yaml.safe_dump({**tree, "name": "memory", "peers": "none", "cases": cases}))
    return path


def measured(suite: Path, directory: Path) -> ResultDocument:
    """Run the suite on the idle host and return the result."""
    wait_until_idle()
    run = subprocess.run(
        [HOSTBENCH, "run", suite, "--results", directory, "--json"],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"hostbench run: exit {run.returncode}: {run.stderr.strip()}")
    return ResultDocument.model_validate_json(run.stdout)


def entry(runs: tuple[CaseResult, ...]) -> dict[str, Any]:
    """Return what the runs show about one case."""
    medians = [case.metrics[case.primary].statistics.median for case in runs]
    difference = max(medians) / min(medians) - 1
    verdicts = [case.verdict for case in runs]
    usable = all(verdict in (Verdict.CLEAN, Verdict.NOISY) for verdict in verdicts)
    holds = difference <= DIFFERENCE_MOST or Verdict.NOISY in verdicts
    return {
        "case": runs[0].title,
        "metric": runs[0].primary,
        "medians": medians,
        "trials": [len(case.counted) for case in runs],
        "difference": difference,
        "verdicts": verdicts,
        # None: the target is neither reached nor missed.
        "holds": holds if usable else None,
    }


def columns(figures: list[dict[str, Any]]) -> dict[str, list[Value]]:
    """Return the columns to save for all cases. Values of both runs get one column for each run."""
    kept: dict[str, list[Value]] = {
        name: [figure[name] for figure in figures] for name in ("case", "metric")
    }
    for name in ("medians", "trials", "verdicts"):
        for run in range(RUNS):
            kept[f"{name}_{run + 1}"] = [figure[name][run] for figure in figures]
    return kept


def main() -> None:
    suite = sys.argv[1] if len(sys.argv) > 1 else "quick"
    with tempfile.TemporaryDirectory() as scratch:
        part = memory_part(suite, Path(scratch))
        documents = [measured(part, Path(scratch)) for _ in range(RUNS)]
    figures = []
    print_header(["case", "first", "second", "difference", "verdicts", ""])
    for runs in zip(*(document.cases for document in documents), strict=True):
        if any(case.primary not in case.metrics for case in runs):
            print(f"{runs[0].title}: {runs[0].verdict}", file=sys.stderr)
            continue
        figure = entry(runs)
        print_row(
            [
                figure["case"],
                *(f"{median:.4g}" for median in figure["medians"]),
                f"{figure['difference']:.1%}",
                ", ".join(figure["verdicts"]),
                ANSWERS[figure["holds"]],
            ]
        )
        figures.append(figure)
    save("mem/repeatability", [Entry({"suite": suite}, columns(figures))])


if __name__ == "__main__":
    main()
