"""A job as Redis holds it: one hash, all values text."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from hostbench.base.errors import UsageError
from hostbench.model.jobs import JobProgress, JobSpec, JobView, StackState
from hostbench.model.result import Verdict
from hostbench.model.suite import Suite

# Each step of priority is worth this much waiting.
AGEING_S = 600.0
MICROSECONDS = 1_000_000
Read = TypeVar("Read")
_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
_VERDICTS: TypeAdapter[dict[Verdict, int]] = TypeAdapter(dict[Verdict, int])

# The fields that a listing needs, without the full suite.
VIEWED = (
    "id",
    "state",
    "since_us",
    "reason",
    "suite_name",
    "hosts",
    "queue",
    "score",
    "priority",
    "spec",
    "submitted_us",
    "started_us",
    "ended_us",
    "exit_code",
    "sessions",
    "cases",
    "done",
    "current",
    "estimate_low_s",
    "estimate_high_s",
    "verdicts",
)

Fields = Mapping[str, str | None]


@dataclass(frozen=True)
class NewJob:
    """A job that is about to be queued. `suite` is the full suite that it measures; `subsystems`
    are those that it needs on the first host, `far_subsystems` those on the second."""

    id: str
    spec: JobSpec
    suite: Suite
    hosts: tuple[str, ...]
    subsystems: tuple[str, ...]
    far_subsystems: tuple[str, ...] = ()

    @property
    def queue(self) -> str:
        """The name of its queue: the sorted set of hosts, and the services that must be
        registered."""
        first, *others = self.hosts
        needs = [f"{first}:{subsystem}" for subsystem in self.subsystems]
        far = [f"{host}:{subsystem}" for host in others for subsystem in self.far_subsystems]
        return f"{','.join(sorted(self.hosts))}|{','.join([*needs, *(far or others)])}"

    @property
    def fields(self) -> dict[str, str]:
        """What is stored about it."""
        return {
            "id": self.id,
            "spec": self.spec.model_dump_json(exclude_defaults=True),
            "suite": self.suite.model_dump_json(exclude_defaults=True),
            "suite_name": self.suite.name,
            "hosts": ",".join(self.hosts),
            "priority": str(self.spec.priority),
        }


def worth_us(priority: int) -> int:
    """Return the waiting time that a priority is worth, in microseconds."""
    return int(priority * AGEING_S * MICROSECONDS)


@dataclass(frozen=True)
class StartedJob:
    """A job that holds its hosts under a fence. `dispatch_s`: how long it waited after it could
    have started."""

    id: str
    fence: int
    owner: str
    dispatch_s: float


@dataclass(frozen=True)
class JobTask:
    """What a started job must measure, and where."""

    suite: Suite
    hosts: tuple[str, ...]
    spec: JobSpec
    submitted_unix_s: float

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Return the task in the job's hash. Raise UsageError for what this version does not
        understand."""
        try:
            suite = Suite.model_validate_json(fields["suite"] or "")
            spec = JobSpec.model_validate_json(fields["spec"] or "")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(
                f"it was queued by another version of hostbench: {where}: {first['msg']}; "
                "submit it again"
            ) from None
        return cls(
            suite=suite,
            hosts=tuple((fields["hosts"] or "").split(",")),
            spec=spec,
            submitted_unix_s=_seconds(fields["submitted_us"]) or 0.0,
        )


def view_of(fields: Fields, position: int | None) -> JobView:
    """Return the job as the API shows it, without what this version does not understand.
    `position`: its place among the queued jobs."""
    return JobView(
        id=fields["id"] or "",
        state=StackState(fields["state"] or ""),
        reason=fields["reason"] or None,
        suite=fields["suite_name"] or "",
        hosts=(fields["hosts"] or "").split(","),
        priority=int(fields["priority"] or 0),
        spec=_read(_SPEC, fields["spec"] or ""),
        since_unix_s=_seconds(fields["since_us"]),
        submitted_unix_s=_seconds(fields["submitted_us"]) or 0.0,
        started_unix_s=_seconds(fields["started_us"]),
        ended_unix_s=_seconds(fields["ended_us"]),
        position=position,
        progress=_progress(fields),
        verdicts=_read(_VERDICTS, fields["verdicts"] or "{}") or {},
        exit_code=None if fields["exit_code"] is None else int(fields["exit_code"]),
        sessions=int(fields["sessions"] or 0),
    )


def _read(what: TypeAdapter[Read], text: str) -> Read | None:
    with contextlib.suppress(ValidationError):
        return what.validate_json(text)
    return None


def queued_view(job: NewJob, submitted_us: int, position: int) -> JobView:
    """Return a job that was just queued, as `view_of` would show it."""
    fields = dict.fromkeys(VIEWED) | job.fields
    queued = {"state": StackState.QUEUED.value, "submitted_us": str(submitted_us)}
    return view_of(fields | queued, position)


def _seconds(microseconds: str | None) -> float | None:
    return None if microseconds is None else int(microseconds) / MICROSECONDS


def _progress(fields: Fields) -> JobProgress | None:
    if fields["cases"] is None:
        return None
    low_s, high_s = fields["estimate_low_s"], fields["estimate_high_s"]
    return JobProgress(
        cases=int(fields["cases"]),
        done=int(fields["done"] or 0),
        current=fields["current"],
        estimate_low_s=None if low_s is None else float(low_s),
        estimate_high_s=None if high_s is None else float(high_s),
    )
