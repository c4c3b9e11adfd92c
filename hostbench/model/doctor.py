"""The findings of `hostbench doctor`, with a schema version so that programs can rely on it."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from hostbench.model.registry import KnownSubsystem

DOCTOR_SCHEMA: Literal[1] = 1


class State(StrEnum):
    """The result of a check, the worst first."""

    PROBLEM = "problem"
    NOTICE = "notice"
    UNKNOWN = "unknown"
    OK = "ok"


class Place(StrEnum):
    """Where a remedy must be applied."""

    HERE = "here"
    CONTAINER_HOST = "container_host"
    VM_OWNER = "vm_owner"


class DoctorModel(BaseModel):
    """Base of the report."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Evidence(DoctorModel):
    """One thing that a check read: a file, several files of one pattern, or a call.

    `value` is the content, on one line. It is None if the thing could not be read; `reason` then
    says why.
    """

    source: str
    value: str | None = None
    reason: str | None = None


class Remedy(DoctorModel):
    """What would change a finding: a command, or what to do. Hostbench itself never does it."""

    action: str
    needs_root: bool
    where: Place


class Finding(DoctorModel):
    """The result of one check. `text` continues the sentence that `title` begins."""

    check: str
    topic: str
    title: str
    state: State
    text: str
    evidence: tuple[Evidence, ...]
    remedy: Remedy | None
    subsystems: tuple[KnownSubsystem, ...]


class DoctorReport(DoctorModel):
    """All findings, the worst first. `subsystem` None: those of every subsystem.

    `window_s`: how long the host was watched for steal, load and throttling; None: it was not
    watched.
    """

    report_schema: Literal[1] = Field(alias="schema")
    version: str
    hostname: str
    cpu: str
    time_unix_s: float
    window_s: float | None
    subsystem: KnownSubsystem | None
    summary: dict[State, int]
    findings: tuple[Finding, ...]
