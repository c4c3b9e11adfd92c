"""What `hostbench list` lists, as plain values for people and programs alike."""

from pathlib import Path
from typing import Any

from hostbench.errors import HostbenchError
from hostbench.index import JobIndex
from hostbench.models.result import JobSummary
from hostbench.models.table import Table
from hostbench.program import SUBSYSTEMS, find_program, load_program
from hostbench.results import ResultsStore, results_directory
from hostbench.suite import built_in_suites, load_suite


def job_summaries(results: Path | None, limit: int) -> tuple[list[JobSummary], int]:
    """The newest `limit` jobs (0: all), newest first, and how many older ones there are."""
    summaries = JobIndex(ResultsStore(results_directory(results))).summaries()
    summaries.reverse()
    shown_summaries = summaries[:limit] if limit else summaries
    return shown_summaries, len(summaries) - len(shown_summaries)


def suites() -> list[dict[str, Any]]:
    """The suites that are found by name, with their scales; one that cannot be read says why."""
    found = []
    for name, path in built_in_suites().items():
        try:
            suite = load_suite(path)
        except HostbenchError as failure:
            about: dict[str, Any] = {
                "description": None,
                "scales": [],
                "error": failure.message,
            }
        else:
            about = {
                "description": suite.description,
                "scales": list(suite.scales),
                "error": None,
            }
        found.append({"name": name, **about})
    return found


def tables() -> list[Table]:
    """The tables of the programs that are there."""
    found = []
    for subsystem in SUBSYSTEMS:
        try:
            find_program(subsystem)
        except HostbenchError:
            continue
        found.append(load_program(subsystem).table)
    return found
