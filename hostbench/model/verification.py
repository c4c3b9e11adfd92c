"""What `hostbench verify` checked on a host, and what it found."""

from typing import Annotated, Literal

from pydantic import Field

from hostbench.model.body import BodyModel
from hostbench.model.events import Count, ParamValue, Seconds, WrongValue
from hostbench.model.host import Gpu

# Without an error in N independent checks, the rate of errors is at most 3/N with 95 % confidence
# (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983).
RULE_OF_THREE = 3
CONFIDENCE = 0.95


class Exposure(BodyModel):
    """What was checked of a subsystem.

    - `unit`: what is counted, `operation` or `byte`.
    - `checks`: those whose results were compared, bit by bit. Of memory kernels that write, these
      are the bytes of the last pass. Those of a trial that found an error are unknown and do not
      count.
    - `checks_of_cpu`: the part of each CPU. Empty: the subsystem is no part of the CPUs.
    - `checks_of_gpu`: the part of each GPU, by its index.
    - `errors`: trials that found an error.
    """

    subsystem: str
    unit: str
    trials: Count = 0
    checks: Count = 0
    checks_of_cpu: dict[str, int] = Field(default_factory=dict)
    checks_of_gpu: dict[str, int] = Field(default_factory=dict)
    errors: Count = 0

    @property
    def rate_most(self) -> float | None:
        """The highest rate of errors that fits, with 95 % confidence; None: there were errors, or
        nothing was checked."""
        return None if self.errors or not self.checks else RULE_OF_THREE / self.checks


class Retest(BodyModel):
    """How often the trial that found an error found one again on these CPUs, with the same seed."""

    cpus: str
    wrong: Count
    trials: Count


class Finding(BodyModel):
    """A wrong result.

    - `cpus`: those of the trial; `wrong` names the one CPU, if the program could.
    - `retests`: on the CPU that is named, and on another one.
    - `command`: runs the trial again.
    """

    time_unix_s: float
    workload: str
    params: dict[str, ParamValue]
    seed: Count
    cpus: str
    wrong: WrongValue | None
    message: str
    command: str
    retests: tuple[Retest, ...] = ()

    @property
    def gpu(self) -> ParamValue | None:
        """The index of the GPU that computed wrong, as the trial was called with it; None: it was
        no GPU."""
        return self.params.get("device")


class Verification(BodyModel):
    """A verification, with the earlier parts that it resumes.

    - `gpus`: those of the host that were to be verified, in any part. A CPU that OpenCL offers is
      none.
    - `seeds`: every seed that was used.
    - `not_run`: workloads that could not run here, with the reason.
    - `failed`: workloads that failed without a wrong result, with the reason.
    - `hardware_errors`: by where the kernel counts them, those that came meanwhile. Empty: it
      counts none here.
    - `clock_hertz`: the lowest and highest clock of a CPU trial. `celsius_most`: None without a
      sensor.
    - `ended`: `time`, `errors` (so many that more say nothing new), the signal, or `a missing
      resource`; `runs` until then.
    """

    document: Literal[1] = Field(default=1, alias="schema")
    id: str
    hostname: str
    machine: str | None
    cpu: str | None
    cpus: tuple[Count, ...]
    gpus: tuple[Gpu, ...] = ()
    began_unix_s: float
    elapsed_s: Seconds = 0.0
    parts: Annotated[int, Field(ge=1)] = 1
    seeds: tuple[Count, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_run: dict[str, str] = Field(default_factory=dict)
    failed: dict[str, str] = Field(default_factory=dict)
    hardware_errors: dict[str, int] = Field(default_factory=dict)
    clock_hertz: tuple[float, float] | None = None
    celsius_most: float | None = None
    ended: str = "runs"

    @property
    def is_corrupt(self) -> bool:
        """Whether this machine computed wrong."""
        return bool(self.findings)
