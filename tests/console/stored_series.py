"""Real documents of many jobs of a host, whose figures are so much higher or lower."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.model.result import CaseResult, Figure, ResultDocument
from hostbench.results.sealed import sealed
from hostbench.results.store import JobDirectory
from tests.unit.quick_documents import as_measured

CASES = 6
EVERY_S = 21_600


def store_series(
    results: Path, host: str, factors: Sequence[float], *, suite: str = "quick", day: int = 1
) -> list[str]:
    """Store a job for each factor, six hours apart from a day of November 2026 on; return their
    ids, the oldest first."""
    ids = []
    for number, factor in enumerate(factors):
        hours = number * (EVERY_S // 3600)
        job_id = f"202611{day + hours // 24:02}T{hours % 24:02}0000Z-{suite}-{number % 65536:04x}"
        begun_unix_s = 1_793_491_200.0 + (day - 1) * 86_400 + number * EVERY_S
        _store(results, of_host(host, factor, job_id, begun_unix_s, suite))
        ids.append(job_id)
    return ids


def of_host(
    host: str, factor: float, job_id: str, begun_unix_s: float, suite: str
) -> ResultDocument:
    """The document of such a job."""
    document = as_measured()
    job = replace(document.job, id=job_id, suite=suite, hostname=host, created_unix_s=begun_unix_s)
    return document.model_copy(
        update={
            "digest": None,
            "boot": None,
            "job": job,
            "host": document.host.model_copy(update={"hostname": host, "machine": host}),
            "cases": tuple(_scaled(case, factor) for case in document.cases[:CASES]),
        }
    )


def store_baseline(data_home: Path, factors: Sequence[float]) -> None:
    """Store a baseline of the model of these hosts, with a host for each factor, below the
    directory that XDG_DATA_HOME names."""
    documents = (
        of_host(f"sound-{number}", factor, f"20261001T{number:06}Z-quick-0000", 1.0, "quick")
        for number, factor in enumerate(factors)
    )
    folder = data_home / "hostbench/baselines"
    folder.mkdir(parents=True)
    baseline = made_of([measured_job(sealed(one)) for one in documents])
    (folder / "model.json").write_bytes(content_of(baseline))


def _store(results: Path, document: ResultDocument) -> None:
    directory = JobDirectory(results / document.job.id)
    directory.path.mkdir(parents=True, exist_ok=True)
    directory.store(document)


def _scaled(case: CaseResult, factor: float) -> CaseResult:
    def scaled(figure: Figure | None) -> Figure | None:
        if figure is None:
            return None
        interval = figure.interval and figure.interval.model_copy(
            update={"low": figure.interval.low * factor, "high": figure.interval.high * factor}
        )
        return figure.model_copy(update={"value": figure.value * factor, "interval": interval})

    names = ("figure", "undisturbed", "delivered")
    return case.model_copy(update={name: scaled(getattr(case, name)) for name in names})
