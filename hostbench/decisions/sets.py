"""Find the jobs that an expression such as `latest`, `2026*-quick-*` or `old/result.json` means."""

import fnmatch
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hostbench.base.errors import UsageError, did_you_mean, shown
from hostbench.decisions.index import FigureIndex, read_figures, unless_refused
from hostbench.model.decision import JobFigures
from hostbench.results.ids import JOB_ID, has_job, job_ids, submitted_unix_s
from hostbench.results.store import DOCUMENT, LATEST

_AGO = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_OF_HOST = "host="
_BETWEEN = ".."
# The jobs that show the spread between jobs: older ones say less about the host's present state.
EARLIER_MOST = 30


@dataclass(frozen=True)
class JobFilter:
    """Which jobs of a set count: those of this host and this suite, begun at or after
    `since_unix_s` and before `until_unix_s`. None: any."""

    host: str | None = None
    suite: str | None = None
    since_unix_s: float | None = None
    until_unix_s: float | None = None

    def takes(self, job: JobFigures) -> bool:
        """Whether a job counts."""
        return (
            (self.host is None or job.host == self.host)
            and (self.suite is None or job.suite == self.suite)
            and self.takes_time(job.created_unix_s)
        )

    def takes_time(self, unix_s: float) -> bool:
        """Whether jobs of this time count."""
        return (self.since_unix_s is None or unix_s >= self.since_unix_s) and (
            self.until_unix_s is None or unix_s < self.until_unix_s
        )


def moment(option: str, text: str) -> float:
    """Return a time in seconds since 1970, from `2026-11-20`, `2026-11-20T14:30`, or a time ago
    such as `90m`, `12h`, `3d`, `2w`.

    Times without an offset are in this host's time zone. Raise UsageError.
    """
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{option} {shown(text)} is not a time; give a date such as 2026-11-20, with a time "
            "such as 2026-11-20T14:30, or an age such as 90m, 12h, 3d or 2w"
        ) from None


def jobs_of(
    expression: str,
    index: FigureIndex,
    wanted: JobFilter,
    *,
    files: bool = True,
    refused: list[str] | None = None,
) -> list[JobFigures]:
    """Return the jobs of a set, oldest first.

    The set has parts, separated by commas: a job id, a pattern of ids with `*`, `latest` or
    `latest-2` (two jobs before the latest), `host=a` (all jobs of a host), `2026-11-01..2026-11-20`
    (all jobs of a time, also with one end alone), and with `files` a result.json, a directory of a
    job, or a directory of jobs. Raise UsageError if a part matches nothing, or if no job is left.

    Raise UsageError for a document that cannot be trusted, too. With `refused`, leave it out and
    add the sentence there; then a set may be empty.
    """
    found: dict[str, JobFigures] = {}
    parts = [part.strip() for part in expression.split(",")]
    for part in parts:
        if not part:
            raise UsageError(
                f"{shown(expression)} has an empty part; give ids, patterns or files with one "
                "comma between them"
            )
        for job in _part(part, index, files, refused):
            # A directory may have the jobs of hosts that began in the same second.
            found[f"{job.job} {job.digest}"] = job
    left = [job for job in found.values() if wanted.takes(job)]
    if not found and refused:
        return []
    if not left:
        raise UsageError(
            f"{shown(expression)} has {len(found)} jobs, and host, suite, since and until "
            f"leave none of them; {_what_there_is(found)}"
        )
    return sorted(left, key=lambda job: (job.created_unix_s, job.job))


@dataclass(frozen=True)
class Sides:
    """The sides of a comparison, and the jobs that show how much figures of their hosts vary."""

    sides: tuple[list[JobFigures], list[JobFigures]]
    earlier: list[JobFigures]


def compared_sides(
    expressions: tuple[str, str], index: FigureIndex, wanted: JobFilter, *, files: bool = True
) -> Sides:
    """Return two sets without a job in common. Raise UsageError; see jobs_of."""
    a, b = (jobs_of(one, index, wanted, files=files) for one in expressions)
    # Jobs of two hosts may have the same id.
    both = {(job.job, job.machine) for job in a} & {(job.job, job.machine) for job in b}
    if both:
        raise UsageError(
            f"job {min(both)[0]} is on both sides, {shown(expressions[0])} and "
            f"{shown(expressions[1])}; give two sets that have no job in common"
        )
    return Sides((a, b), earlier_jobs((a, b), index))


def earlier_jobs(sides: Sequence[Sequence[JobFigures]], index: FigureIndex) -> list[JobFigures]:
    """Return the newest EARLIER_MOST jobs of the same hosts and suites that are on neither side."""
    given = [job for side in sides for job in side]
    return index.newest_alike(given, EARLIER_MOST)


def _part(
    part: str, index: FigureIndex, files: bool, refused: list[str] | None
) -> list[JobFigures]:
    if files and (part.endswith(".json") or "/" in part or Path(part).is_dir()):
        return _files(Path(part), refused)
    # `..` and paths with it are no times, also where no files are allowed.
    if part.startswith(_OF_HOST) or (_BETWEEN in part and part != _BETWEEN and "/" not in part):
        return _chosen(part, index, refused)
    if "*" in part or "?" in part or "[" in part:
        ids = [job for job in index.ids() if fnmatch.fnmatchcase(job, part)]
        if not ids:
            raise UsageError(
                f"no job with a document has an id like {shown(part)}; hostbench list shows the ids"
            )
        return index.jobs(ids, refused)
    return _one(part, index, refused)


def _chosen(part: str, index: FigureIndex, refused: list[str] | None) -> list[JobFigures]:
    """Return the jobs of a host, or of a time. A document that cannot be trusted counts as one of
    any host, by the time in its id, so that it is named."""
    if part.startswith(_OF_HOST):
        chosen = JobFilter(host=part.removeprefix(_OF_HOST))
    else:
        since, _, until = part.partition(_BETWEEN)
        chosen = JobFilter(
            since_unix_s=moment(f"{shown(part)}:", since) if since else None,
            until_unix_s=moment(f"{shown(part)}:", until) if until else None,
        )
    heads = {job.job: job for job in index.heads()}
    takes = {job: chosen.takes(head) for job, head in heads.items()}
    ids = [job for job in index.ids() if takes.get(job, chosen.takes_time(submitted_unix_s(job)))]
    if not ids:
        there = dict.fromkeys(job.host for job in heads.values())
        meant = "" if chosen.host is None else did_you_mean(chosen.host, there)
        raise UsageError(
            f"no job with a document is of {shown(part)}; {meant}hostbench list shows the "
            "jobs with their hosts"
        )
    return index.jobs(ids, refused)


def _one(part: str, index: FigureIndex, refused: list[str] | None) -> list[JobFigures]:
    job = part
    if match := re.fullmatch(rf"{LATEST}(?:-(\d{{1,6}}))?", part, re.ASCII):
        ids, back = index.ids(), int(match[1] or 0)
        if back >= len(ids):
            raise UsageError(
                f"{part} is not there: {len(ids)} jobs of the results directory have a document; "
                "hostbench list shows the ids"
            )
        job = ids[-1 - back]
    if not has_job(index.root, job):
        raise UsageError(
            f"there is no job {shown(job)}; {did_you_mean(job, index.ids())}give an id that "
            "hostbench list shows, latest, a pattern such as '2026*-quick-*', or a result.json"
        )
    return index.jobs([job], refused)


def _files(path: Path, refused: list[str] | None) -> list[JobFigures]:
    """Return the jobs of a file, of a job's directory, or of a directory of jobs, which has an
    index of its own."""
    if path.is_dir():
        if (path / DOCUMENT).exists() or JOB_ID.fullmatch(path.absolute().name):
            return _read([path / DOCUMENT], refused)
        before = len(refused or ())
        found = _jobs_below(path, refused)
        if not found and len(refused or ()) == before:
            raise UsageError(
                f"{path} holds no job with a document; give a results directory, a job's "
                "directory, or a result.json"
            )
        return found
    if not path.is_file():
        what = f"{path} is no file" if path.exists() else f"there is no {path}"
        raise UsageError(f"{what}; give a result.json, or a directory of jobs")
    return _read([path], refused)


def _read(paths: Iterable[Path], refused: list[str] | None) -> list[JobFigures]:
    found = (unless_refused(read_figures, path, refused) for path in paths)
    return [job for job in found if job is not None]


def _jobs_below(path: Path, refused: list[str] | None) -> list[JobFigures]:
    """Return the jobs of a results directory, of a directory of such (one for each host), or of the
    documents in a directory."""
    with FigureIndex(path) as index:
        if found := index.jobs(index.ids(), refused):
            return found
    try:
        inside = sorted(path.iterdir())
    except OSError:
        return []
    found = _read((one for one in inside if one.suffix == ".json" and one.is_file()), refused)
    for one in inside:
        if one.is_dir() and job_ids(one):
            with FigureIndex(one) as index:
                found += index.jobs(index.ids(), refused)
    return found


def _what_there_is(found: dict[str, JobFigures]) -> str:
    hosts = ", ".join(sorted({job.host for job in found.values()}))
    suites = ", ".join(sorted({job.suite for job in found.values()}))
    return f"they are of the hosts {hosts} and the suites {suites}"
