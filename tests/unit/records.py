"""Trials, cases and sessions as tests need them: everything has a plain value that can be given
otherwise."""

from collections.abc import Mapping
from typing import Any

from hostbench.model.events import (
    Clock,
    Disturbance,
    EndEvent,
    Placement,
    SampleEvent,
    SkipEvent,
    StartEvent,
)
from hostbench.model.host import (
    CgroupLimits,
    Cpu,
    Frequency,
    HostInventory,
    Virtualisation,
)
from hostbench.model.limit import Limit
from hostbench.model.result import (
    CaseRecord,
    PlannedCase,
    ProgramVersion,
    SessionRecord,
    StopReason,
    TrialRecord,
    Verdict,
)
from hostbench.model.suite import Repeats, Suite, SuiteCase
from hostbench.model.table import Metric, Param, Table, Workload

RATE = "operations_per_second"
RATE_METRIC = Metric(
    name=RATE, unit="operation/s", direction="higher", primary=True, description="the rate"
)
QUIET: dict[str, Any] = {
    "cpu_ratio": 0.999,
    "wait_s": 0.0,
    "involuntary_switches": 0,
    "steal_s": 0.0,
    "psi_cpu_some_s": 0.0,
    "throttled_s": 0.0,
    "clean_slice_ratio": 0.99,
    "harness_ratio": 0.005,
}


def placement(**changes: Any) -> Placement:
    plain: dict[str, Any] = {
        "cpus": (0, 1),
        "affinity": (0, 1),
        "cores": 2,
        "sockets": 1,
        "smt_shared": False,
        "oversubscribed": False,
        "policy": "cores_first",
        "quota_cpus": None,
        "cpuset": "0-1",
        "cgroup": "v2",
    }
    return Placement(**(plain | changes))


def start(**changes: Any) -> StartEvent:
    plain: dict[str, Any] = {
        "event": "start",
        "protocol": 1,
        "program": "cpu-bench",
        "version": "0.1.0",
        "workload": "fma",
        "params": {"dtype": "fp64", "threads": 2, "duration_s": 0.5, "cpus": None},
        "placement": placement(),
        "clock": Clock(source="CLOCK_MONOTONIC", resolution_s=1e-8, read_s=2e-8),
        "time_unix_s": 1.8e9,
    }
    return StartEvent(**(plain | changes))


def end(value: float | None = 100.0, elapsed_s: float = 1.0, **disturbance: Any) -> EndEvent:
    """`disturbance` says what differs from a quiet host."""
    return EndEvent(
        event="end",
        metrics={RATE: value, "clock_hertz": 3e9},
        basis="clean_slices",
        threads=(),
        disturbance=Disturbance(**(QUIET | disturbance)),
        verified=True,
        elapsed_s=elapsed_s,
        reasons={},
    )


def limit(value: float | None, tolerance: float = 0.02) -> Limit:
    return Limit(value=value, unit="operation/s", tolerance=tolerance)


def planned(case: str = "aaaa", **changes: Any) -> PlannedCase:
    plain: dict[str, Any] = {
        "case": case,
        "workload": "cpu.fma",
        "params": {"threads": 2, "duration_s": 0.5},
        "given": ("threads",),
        "label": "2 threads",
        "block": 0,
        "repeats": Repeats(min_trials=3, max_trials=5),
        "trial_time_s": 0.7,
        "timeout_s": 30.0,
    }
    return PlannedCase(**(plain | changes))


def bare_trial(index: int = 0, case: str = "aaaa", **changes: Any) -> TrialRecord:
    """A trial that is not judged yet."""
    plain: dict[str, Any] = {
        "case": case,
        "index": index,
        "time_unix_s": 1.8e9,
        "wall_s": 0.7,
        "verdict": Verdict.CLEAN,
        "events": (start(), end()),
    }
    return TrialRecord(**(plain | changes))


def sampled(count: int) -> tuple[SampleEvent, ...]:
    return tuple(
        SampleEvent(event="sample", t_s=i + 1.0, dt_s=1.0, metrics={RATE: 100.0 + i})
        for i in range(count)
    )


def skipped(reason: str = "neon needs an aarch64 CPU") -> TrialRecord:
    return bare_trial(events=(SkipEvent(event="skip", reason=reason),))


def host(**changes: Any) -> HostInventory:
    plain: dict[str, Any] = {
        "hostname": "alpha",
        "machine": "0123456789abcdef",
        "kernel": "6.12.0",
        "distribution": "Debian GNU/Linux 13 (trixie)",
        "cpu": Cpu(architecture="x86_64", model_name="A CPU", flags=("fma",)),
        "allowed_cpus": (0, 1),
        "caches": (),
        "memory_bytes": 1 << 30,
        "frequency": Frequency(),
        "mitigations": {},
        "virtualisation": Virtualisation(),
        "cgroup": CgroupLimits(),
    }
    return HostInventory(**(plain | changes))


def session(cases: tuple[PlannedCase, ...] = (), **changes: Any) -> SessionRecord:
    plain: dict[str, Any] = {
        "job": "20261120T174501Z-quick-3f2a",
        "time_unix_s": 1.8e9,
        "hostbench": "0.1.0",
        "programs": (
            ProgramVersion(name="cpu-bench", subsystem="cpu", version="0.1.0", sha256="ab" * 32),
        ),
        "host": host(),
        "suite": Suite(name="quick", cases=(SuiteCase(workload="cpu.fma"),)),
        "workloads": {"cpu.fma": (RATE_METRIC,)},
        "cases": cases or (planned(),),
    }
    return SessionRecord(**(plain | changes))


def session_of(
    subsystem: str,
    cases: tuple[PlannedCase, ...],
    workloads: Mapping[str, tuple[Metric, ...]],
    **changes: Any,
) -> SessionRecord:
    """Of a suite of one subsystem, which has these workloads with their metrics."""
    program = ProgramVersion(
        name=f"{subsystem}-bench", subsystem=subsystem, version="0.1.0", sha256="cd" * 32
    )
    suite = Suite(name=subsystem, cases=tuple(SuiteCase(workload=name) for name in workloads))
    mine = {"programs": (program,), "suite": suite, "workloads": workloads}
    return session(cases, **(mine | changes))


def done(case: str = "aaaa", stopped: StopReason = StopReason.TARGET_REACHED) -> CaseRecord:
    return CaseRecord(case=case, stopped=stopped, verdict=Verdict.CLEAN)


def param(name: str, **changes: Any) -> Param:
    plain: dict[str, Any] = {
        "name": name,
        "type": "count",
        "unit": None,
        "default": None,
        "min": 1,
        "max": 4096,
        "choices": (),
        "unsupported": {},
        "scope": "request",
        "help": "",
    }
    return Param(**(plain | changes))


HOW: dict[str, Any] = {"roles": ("how",)}
FMA = Workload(
    name="fma",
    description="fused multiply-add",
    kind="step",
    unsupported=None,
    params=(
        param(
            "dtype",
            type="choice",
            default="fp64",
            choices=("fp64", "fp32"),
            min=None,
            max=None,
            roles=("tag",),
        ),
        param(
            "isa",
            type="choice",
            default="best",
            choices=("best", "scalar", "avx2", "neon"),
            unsupported={"neon": "neon needs an aarch64 CPU"},
            min=None,
            max=None,
            roles=("tag",),
            title="instruction set",
            resolved=("best",),
            resolved_once=True,
        ),
        param(
            "threads",
            default="all",
            choices=("all",),
            roles=("axis", "tag"),
            noun="thread",
            resolved=("all",),
        ),
        param("cpus", type="cpu_list", min=None, max=None),
        param("duration_s", type="number", unit="s", default=1, min=0.01, max=604800, **HOW),
        param("work", unit="operation", max=1e18, excludes="duration_s", ends_trial=True),
        param("warmup_s", type="number", unit="s", default=0.1, min=0, max=60, **HOW),
        param("sample_interval_s", type="number", unit="s", default=1, min=0.1, max=3600, **HOW),
        param("lifeline_fd", scope="host", min=0, max=1 << 20),
    ),
    metrics=(RATE_METRIC,),
)
TABLE = Table(protocol=1, program="cpu-bench", subsystem="cpu", version="0.1.0", workloads=(FMA,))
