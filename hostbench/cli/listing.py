"""What `hostbench list` lists, as plain values for people and programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostbench.base.errors import HostbenchError
from hostbench.model.summary import JobSummary
from hostbench.results.ids import results_directory
from hostbench.results.index import JobIndex

if TYPE_CHECKING:
    from hostbench.model.table import Table

JOBS_SHOWN = 20
# Functions that list suites and tables import what these need.


def job_summaries(results: Path | None, limit: int) -> tuple[list[JobSummary], int]:
    """Return the newest `limit` jobs (0: all), newest first, and the number of older ones."""
    summaries = JobIndex(results_directory(results)).summaries()
    summaries.reverse()
    shown_summaries = summaries[:limit] if limit else summaries
    return shown_summaries, len(summaries) - len(shown_summaries)


def suites() -> list[dict[str, Any]]:
    """Return the suites that can be named, with their scales, or with the reason if one cannot be
    read."""
    from hostbench.plan.suite import built_in_suites, load_suite

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


def tables() -> "list[Table]":
    """Return the tables of the available programs. A program of another package that cannot be used
    only causes a warning. Raise ResourceError for one of ours."""
    from hostbench.model.registry import subsystems
    from hostbench.programs.program import find_program, load_program

    found = []
    for subsystem in subsystems().values():
        try:
            find_program(subsystem.name)
        except HostbenchError:
            continue
        try:
            found.append(load_program(subsystem.name).table)
        except HostbenchError as error:
            if subsystem.directory is None:
                raise
            sys.stderr.write(f"hostbench: {error.message}\n")
    return found
