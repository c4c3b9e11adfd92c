"""Result documents of the GPU subsystem, from records: no program runs for them.

Figures follow a plain model of a card: operations a cycle by type, a clock that the tensor cores
lower, caches of three sizes. One case is throttled, one is skipped; a document may be of a host
without a GPU.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hostbench.judge.trial import measured_trial, skipped_trial
from hostbench.model.events import EndEvent, SampleEvent, SkipEvent, StartEvent, WarningEvent
from hostbench.model.limit import Factor, Limit
from hostbench.model.old_params import old_meaning
from hostbench.model.result import (
    CaseRecord,
    PlannedCase,
    Record,
    ResultDocument,
    TrialRecord,
)
from hostbench.model.suite import Repeats
from hostbench.model.table import Direction, Metric
from hostbench.plan.label import param_word
from hostbench.plan.workloads import case_hash
from tests.unit.records import bare_trial, end, session_of, start
from tests.unit.report_documents import BEGAN_UNIX_S, HOST, done_record, ended

RATE, BYTES = "operations_per_second", "bytes_per_second"
ACCESS, LAUNCH = "access_time_s", "launch_time_s"
CYCLES, CLOCK, CLOCK_MOST = "operations_per_cycle", "core_clock_hertz", 1.98e9
UNITS = {RATE: "operation/s", BYTES: "byte/s", ACCESS: "s", LAUNCH: "s"}
PRIMARY = {
    **dict.fromkeys(("fma", "int_add", "dp4a", "tensor", "gemm"), RATE),
    **dict.fromkeys(("read", "write", "copy", "triad", "host_to_device", "device_to_host"), BYTES),
    "pointer_chase": ACCESS,
    "launch_latency": LAUNCH,
}
# Of the whole card, in a cycle.
PEAKS = {
    "fp64": 16896.0,
    "fp32": 33792.0,
    "fp16": 67584.0,
    "bf16": 67584.0,
    "int32": 8448.0,
    "tensor fp16": 540672.0,
    "tensor fp8": 1081344.0,
}
MEMORY_PEAK, LINK_PEAK = 4.8e12, 63e9
NO_GPU = "no GPU: libcuda.so.1 is not installed; libOpenCL.so.1 has no platform"
CARD = {
    "device_name": "A card for tests",
    "device_type": "gpu",
    "device_uuid": "GPU-00000000-0000-0000-0000-000000000001",
    "driver": "550.54",
    "compute_capability": "9.0",
    "compute_units": "132",
    "memory_bytes": str(141 << 30),
    "pcie": "generation 5 x16",
    "ecc": "on",
    "kernel": "fma_fp32, cubin sm_90",
}


def _metric(name: str, unit: str = "1", direction: Direction = "higher") -> Metric:
    description = f"{name.replace('_', ' ')}, of a document for tests"
    return Metric(name=name, unit=unit, direction=direction, primary=False, description=description)


_CARD = (
    _metric("rate_cv", "1", "lower"),
    _metric(CLOCK, "Hz"),
    _metric("power_watts", "W", "lower"),
    _metric("energy_joules", "J", "lower"),
    _metric("temperature_celsius", "°C", "lower"),
    _metric("throttled_ratio", "1", "lower"),
)


def _metrics(workload: str) -> tuple[Metric, ...]:
    name = PRIMARY[workload]
    direction: Direction = "lower" if name in (ACCESS, LAUNCH) else "higher"
    figure = _metric(name, UNITS[name], direction).model_copy(update={"primary": True})
    cycles = (_metric(CYCLES, "operation/cycle"),) if name == RATE else ()
    return (figure, *cycles, *_CARD)


METRICS = {f"gpu.{name}": _metrics(name) for name in PRIMARY}


def gpu_run(trials: int = 3, *, limits: bool = True, gpu: bool = True) -> ResultDocument:
    """A case of everything that the section draws; `gpu` False: of a host that has none."""
    cases = tuple(_cases())
    rng = random.Random(5)
    records: list[Record] = [
        session_of(
            "gpu",
            cases,
            METRICS,
            job="20261123T140000Z-gpu-5d1c",
            host=HOST,
            time_unix_s=BEGAN_UNIX_S,
        )
    ]
    for position, case in enumerate(cases):
        made = _Made(case, rng, limits, gpu)
        records += made.records(BEGAN_UNIX_S + position * trials * 3.0, trials)
    return ended(records)


def _planned(workload: str, **params: Any) -> PlannedCase:
    defaults = {"device": "auto", "backend": "auto", "duration_s": 1.0}
    return PlannedCase(
        case=case_hash(f"gpu.{workload}", params),
        workload=f"gpu.{workload}",
        params=defaults | params,
        given=tuple(params),
        label=" ".join(param_word(old_meaning(name), value) for name, value in params.items()),
        block=0,
        repeats=Repeats(min_trials=3, max_trials=5),
        trial_time_s=2.2,
        timeout_s=60,
    )


def _cases() -> Iterator[PlannedCase]:
    for dtype in ("fp64", "fp32", "fp16", "bf16"):
        yield _planned("fma", dtype=dtype)
    yield _planned("int_add", dtype="int32")
    yield _planned("dp4a")
    for dtype in ("fp16", "fp8"):
        yield _planned("tensor", dtype=dtype)
    yield _planned("gemm", dtype="fp16")
    for workload in ("read", "write", "triad"):
        yield _planned(workload)
    for path in ("kernel", "driver"):
        yield _planned("copy", path=path)
    for size in (16 << 10, 1 << 20, 16 << 20, 1 << 30):
        yield _planned("pointer_chase", size_bytes=size)
    for workload in ("host_to_device", "device_to_host"):
        for host_memory in ("pinned", "pageable"):
            yield _planned(workload, host_memory=host_memory)
    for mode in ("round_trip", "back_to_back"):
        yield _planned("launch_latency", mode=mode)


@dataclass(frozen=True)
class _Made:
    """The records of one case."""

    case: PlannedCase
    rng: random.Random
    limits: bool
    gpu: bool

    def records(self, at_unix_s: float, trials: int) -> Iterator[TrialRecord | CaseRecord]:
        if not self.gpu:
            skip = SkipEvent(event="skip", reason=NO_GPU)
            bare = bare_trial(0, self.case.case, events=(skip,))
            made = [skipped_trial(bare)]
        else:
            made = [self._trial(index, at_unix_s) for index in range(trials)]
        yield from made
        yield done_record(self.case, made)

    def _trial(self, index: int, at_unix_s: float) -> TrialRecord:
        events = (self._start(), *self._samples(), *self._warnings(), self._end())
        trial = bare_trial(
            index,
            self.case.case,
            events=events,
            time_unix_s=at_unix_s + index * 3.0,
            wall_s=2.2,
        )
        return measured_trial(trial, METRICS[self.case.workload], self._limits())

    def _start(self) -> StartEvent:
        found = {**self.case.params, "device": "0", "backend": "cuda"}
        return start(program="gpu-bench", workload=self._name, params=found, facts=CARD)

    def _warnings(self) -> Iterator[WarningEvent]:
        if self._clock < CLOCK_MOST:
            message = "in 40 % of 50 readings the card's clock was held down by its power limit"
            yield WarningEvent(event="warning", code="clock_throttled", message=message)

    def _samples(self) -> Iterator[SampleEvent]:
        figures = self._figures()
        names = (PRIMARY[self._name], "power_watts", "temperature_celsius")
        metrics = {name: figures[name] for name in names} | {"nvml_clock_hertz": self._clock}
        yield SampleEvent(event="sample", t_s=1.0, dt_s=1.0, metrics=metrics)

    def _end(self) -> EndEvent:
        # Work that waits has no slices.
        return end(0.0, clean_slice_ratio=None, harness_ratio=None).model_copy(
            update={"metrics": self._figures(), "basis": "whole_run"}
        )

    def _figures(self) -> dict[str, float | None]:
        figure = self._figure() * self.rng.gauss(1.0, 0.002)
        metrics: dict[str, float | None] = {
            PRIMARY[self._name]: figure,
            "rate_cv": 0.003,
            CLOCK: self._clock,
            "power_watts": 640.0,
            "energy_joules": 640.0,
            "temperature_celsius": 62.0,
            "throttled_ratio": 0.4 if self._clock < CLOCK_MOST else 0.0,
        }
        return metrics | ({CYCLES: figure / self._clock} if self._peak else {})

    def _figure(self) -> float:
        if self._peak:
            return 0.97 * self._peak * self._clock * (0.8 if self._name == "gemm" else 1.0)
        if self._name == "pointer_chase":
            size = int(self.case.params["size_bytes"])
            cycles = 32 if size <= 128 << 10 else 260 if size <= 32 << 20 else 690
            return cycles / self._clock
        if self._name == "launch_latency":
            return 5.2e-6 if self.case.params["mode"] == "round_trip" else 2.1e-6
        if self._name in ("host_to_device", "device_to_host"):
            return 55e9 if self.case.params["host_memory"] == "pinned" else 11e9
        return (0.93 if self.case.params.get("path") == "driver" else 0.91) * MEMORY_PEAK

    def _limits(self) -> dict[str, Limit]:
        name = PRIMARY[self._name]
        if not self.limits or name not in (RATE, BYTES):
            return {}
        if not self._peak:
            value = LINK_PEAK if "device_" in self._name or "_device" in self._name else MEMORY_PEAK
            factor = Factor(name="bandwidth", value=value, unit="byte/s", source="for tests")
            return {name: Limit(value=value, unit=UNITS[name], factors=(factor,))}
        a_cycle = Factor(name="a cycle", value=self._peak, unit="operation/cycle", source="tests")
        clock = Factor(name="clock", value=CLOCK_MOST, unit="Hz", source="for tests")
        return {
            name: Limit(value=self._peak * CLOCK_MOST, unit=UNITS[name], factors=(a_cycle, clock)),
            CYCLES: Limit(value=self._peak, unit="operation/cycle", factors=(a_cycle,)),
        }

    @property
    def _name(self) -> str:
        return self.case.workload.removeprefix("gpu.")

    @property
    def _peak(self) -> float | None:
        """Operations a cycle; None: it does not compute."""
        if PRIMARY[self._name] != RATE:
            return None
        dtype = str(self.case.params.get("dtype", "int32"))
        return PEAKS[f"tensor {dtype}" if self._name in ("tensor", "gemm") else dtype]

    @property
    def _clock(self) -> float:
        return 1.72e9 if self._name in ("tensor", "gemm") else CLOCK_MOST
