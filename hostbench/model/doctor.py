"""What `hostbench doctor` found: schema-versioned, so that programs may rely on it."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from hostbench.model.registry import KnownSubsystem

DOCTOR_SCHEMA: Literal[1] = 1


class State(StrEnum):
    """What a check says, the worst first."""

    PROBLEM = "problem"
    NOTICE = "notice"
    UNKNOWN = "unknown"
    OK = "ok"


class Place(StrEnum):
    """Where a remedy has to be applied."""

    HERE = "here"
    CONTAINER_HOST = "container_host"
    VM_OWNER = "vm_owner"


class DoctorModel(BaseModel):
    """Base of the report."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Evidence(DoctorModel):
    """One thing that was looked at: a file, several files of one pattern, or a call.

    `value` is what it said, on one line; None when it could not be read, and then `reason` says
    why.
    """

    source: str
    value: str | None = None
    reason: str | None = None


class Remedy(DoctorModel):
    """What would change it: a command, or what to do. Nothing of it is ever done by hostbench."""

    action: str
    needs_root: bool
    where: Place


class Finding(DoctorModel):
    """The answer of one check. `text` goes on where the title ends."""

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

    `window_s` is how long the host was watched for steal, load and throttling; None: not at all.
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
