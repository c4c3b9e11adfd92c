"""How to measure a case again."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from hostbench.decisions.listing import newest_measurements
from hostbench.model.events import ParamValue
from hostbench.model.jobs import JobSpec
from orchestrator.console.new import command_of, curl_of


class Repeat(BaseModel):
    """How to measure one case again, as a command and as a call."""

    command: str
    curl: str

    @property
    def texts(self) -> tuple[str, str]:
        """Both, in this order."""
        return self.command, self.curl


def repeat_of(
    workload: str, given: Mapping[str, ParamValue], hosts: Sequence[str]
) -> Repeat | None:
    """Return how to measure a case again on these hosts; None: no job can be submitted for a host
    of this name."""
    try:
        spec = JobSpec(workload=workload, params=dict(given), hosts=list(hosts))
    except ValidationError:
        return None
    return Repeat(command=command_of(spec) or "", curl=curl_of(spec))


def repeats_of(root: Path, jobs: Mapping[str, Sequence[str]]) -> dict[str, Repeat]:
    """Return how to measure cases again, by case. `jobs`: those of each case; its parameters and
    hosts are those of the newest one. A case that the index in a results directory lacks has
    none."""
    try:
        found = newest_measurements(root, jobs)
    except sqlite3.Error:
        return {}
    repeats = {
        case: repeat_of(one.figure.workload, one.figure.given, one.hosts)
        for case, one in found.items()
    }
    return {case: repeat for case, repeat in repeats.items() if repeat is not None}
