"""Figures of jobs as they might be measured, for tests of decisions."""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from hostbench.decisions.index import FigureIndex
from hostbench.model.decision import CaseFigure, JobFigures
from hostbench.model.result import ResultDocument
from hostbench.results.store import DOCUMENT, JobDirectory
from tests.unit.report_documents import full_run

BEGAN_UNIX_S = 1.7952e9
HOUR_S = 3600.0


@dataclass
class Hosts:
    """Jobs of one host. Each figure is 100 times what its case is changed by, its own spread
    (`within`, a standard deviation of logarithms), and one of the whole job (`between`), which
    heavy tails visit now and then. Jobs follow each other by `apart_s`."""

    cases: Sequence[str] = tuple(f"cpu.fma {number}" for number in range(20))
    within: float = 0.003
    between: float = 0.01
    apart_s: float = HOUR_S
    is_guest: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    made: int = 0

    def job(
        self,
        changed: Mapping[str, float] | None = None,
        *,
        delivered: Callable[[float], float | None] = lambda value: value,
        facts: Mapping[str, str] | None = None,
        version: str = "0.1.0",
        suite: str = "quick",
    ) -> JobFigures:
        """The next job. `changed`: factors by case; `delivered` of what was undisturbed."""
        self.made += 1
        whole = self.rng.gauss(0, self.between) * (4 if self.rng.random() < 0.05 else 1)
        cases = {}
        for name in self.cases:
            factor = (changed or {}).get(name, 1.0)
            value = 100 * factor * (1 + whole + self.rng.gauss(0, self.within))
            cases[name] = case(name, value, delivered(value))
        return JobFigures(
            job=f"20261120T{self.made:06d}Z-{suite}-0000",
            suite=suite,
            host="a",
            machine="a",
            is_guest=self.is_guest,
            created_unix_s=BEGAN_UNIX_S + self.made * self.apart_s,
            digest="sha256:0",
            versions={"cpu": version, "mem": version, "disk": version},
            facts={"kernel": "6.1.0", **(facts or {})},
            cases=cases,
        )

    def jobs(self, count: int, changed: Mapping[str, float] | None = None) -> list[JobFigures]:
        """Some jobs, one after the other."""
        return [self.job(changed) for _ in range(count)]


def case(
    name: str, undisturbed: float | None, delivered: float | None = None, why_not: str | None = None
) -> CaseFigure:
    """A figure of a rate; `name` is its title, its hash too."""
    return CaseFigure(
        case=name,
        title=name,
        workload=name.split()[0],
        unit="operation/s",
        direction="higher",
        undisturbed=undisturbed,
        delivered=delivered,
        why_not=why_not,
    )


def stored_job(
    root: Path, number: int, factor: float = 1.0, *, host: str = "a", suite: str = "full"
) -> JobDirectory:
    """A job below a results directory as if it had been measured: one of the CPU's, its figures
    times `factor`, on day `number` of a year."""
    base = _base()
    cases = tuple(
        case.model_copy(
            update={
                name: one.model_copy(update={"value": one.value * factor})
                for name in ("figure", "undisturbed", "delivered")
                if (one := getattr(case, name)) is not None
            }
        )
        for case in base.cases
    )
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    job_id = f"{day:%Y%m%dT%H%M%SZ}-{suite}-{number:04x}"
    summary = replace(
        base.job, id=job_id, suite=suite, hostname=host, created_unix_s=day.timestamp()
    )
    inventory = base.host.model_copy(update={"hostname": host, "machine": f"hash of {host}"})
    job = JobDirectory(root / job_id)
    job.path.mkdir(parents=True)
    job.store(base.model_copy(update={"job": summary, "cases": cases, "host": inventory}))
    return job


@functools.cache
def _base() -> ResultDocument:
    return full_run(2, ("fma",))


def indexed(results: Path, jobs: Sequence[JobFigures]) -> None:
    """Fill the index of a results directory with these jobs. Their documents are empty: what
    decides reads the index alone."""
    by_id = {job.job: job for job in jobs}
    for job in by_id:
        (results / job).mkdir()
        (results / job / DOCUMENT).touch()
    read = "hostbench.decisions.index.read_figures"
    with (
        mock.patch(read, lambda document: by_id[document.parent.name]),
        FigureIndex(results) as index,
    ):
        index.refresh()
