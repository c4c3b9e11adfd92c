"""Result documents of the disk subsystem, from records: no program runs for them.

Figures follow a plain model of a device: what one operation takes, and how many it works on at a
time. One case is buffered, one found its file in the page cache, one has too few operations for its
percentiles.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hostbench.judge.statistics import describe
from hostbench.judge.trial import failed_trial, measured_trial
from hostbench.model.events import EndEvent, SampleEvent, StartEvent, WarningEvent
from hostbench.model.host import BlockDevice, Disk, ScratchPlace
from hostbench.model.limit import Factor, Limit
from hostbench.model.old_params import old_meaning
from hostbench.model.result import (
    CaseRecord,
    CaseResult,
    PeerResult,
    PlannedCase,
    Record,
    ResultDocument,
    TrialRecord,
    Verdict,
)
from hostbench.model.suite import Repeats
from hostbench.model.table import Direction, Metric
from hostbench.model.trial import TrialFailed
from hostbench.plan.label import param_word
from hostbench.plan.workloads import case_hash
from tests.unit.records import bare_trial, end, session_of, start
from tests.unit.report_documents import BEGAN_UNIX_S, done_record, ended
from tests.unit.report_documents import HOST as BARE_HOST

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BYTES, OPERATIONS, COMMIT = "bytes_per_second", "operations_per_second", "commit_time_s"
HOST = BARE_HOST.model_copy(
    update={
        "scratch": ScratchPlace(
            directory="/var/tmp/hostbench-1000",
            file_system="ext4",
            size_bytes=100 << 30,
            free_bytes=60 << 30,
            device=BlockDevice(
                number="254:1",
                name="vda1",
                disks=(
                    Disk(
                        name="vda",
                        transport="virtio",
                        rotational=True,
                        link_reason="a virtual disk has no link",
                    ),
                ),
            ),
            device_source="st_dev",
        )
    }
)
REPEATS = Repeats(min_trials=3, max_trials=5)
LINK = 600e6
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
# What a percentile takes at least, docs/kernel-protocol.md.
LEAST = {"p50": 0, "p90": 64, "p95": 130, "p99": 662, "p99_9": 6643}


@dataclass(frozen=True)
class Device:
    """What it has to be: seconds of a random and of a sequential read in the median; how many
    requests it works on at a time; by how much the slowest of a hundred is slower."""

    random_s: float
    sequential_s: float
    parallel: int = 16
    tail: float = 2.5
    bytes_per_second: float = 520e6


FLASH = Device(random_s=110e-6, sequential_s=62e-6)
SPINNING = Device(random_s=8.1e-3, sequential_s=0.14e-3, parallel=1, bytes_per_second=180e6)


def _metric(name: str, unit: str, *, direction: Direction = "higher") -> Metric:
    description = f"{name.replace('_', ' ')}, of a document for tests"
    return Metric(name=name, unit=unit, direction=direction, primary=False, description=description)


_SECONDS = ("mean", "min", *QUANTILES, "max")
_COMMON = (
    _metric(BYTES, "byte/s"),
    _metric(OPERATIONS, "operation/s"),
    *(_metric(f"latency_{name}_s", "s", direction="lower") for name in _SECONDS),
    _metric("cpu_seconds_per_million_operations", "s", direction="lower"),
    _metric("device_read_ratio", "1"),
    _metric("device_write_ratio", "1"),
    _metric("cached_ratio_before", "1", direction="lower"),
    _metric("cached_ratio_after", "1", direction="lower"),
    _metric("diskstats_read_bytes", "byte"),
    _metric("diskstats_write_bytes", "byte"),
    _metric("device_busy_ratio", "1"),
    _metric("planned_write_bytes", "byte"),
    _metric("prefilled_bytes", "byte"),
    _metric("prefill_s", "s", direction="lower"),
    _metric("covered_bytes", "byte"),
    _metric("work_bytes", "byte"),
    _metric("work_operations", "operation"),
)
_STREAMS = (
    *(_metric(f"{stream}_{OPERATIONS}", "operation/s") for stream in ("read", "write")),
    *(
        _metric(f"{stream}_latency_{name}_s", "s", direction="lower")
        for stream in ("read", "write")
        for name in _SECONDS
    ),
)
_COMMITTED = (_metric(COMMIT, "s", direction="lower"), *_COMMON)
PRIMARY = {
    **dict.fromkeys(("seq_read", "seq_write", "seq_rw"), BYTES),
    **dict.fromkeys(("rand_read", "rand_write", "rand_rw"), OPERATIONS),
    "fsync_latency": COMMIT,
}


def _with_primary(name: str, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    return tuple(
        metric.model_copy(update={"primary": metric.name == PRIMARY[name]}) for metric in metrics
    )


METRICS = {
    f"disk.{name}": _with_primary(
        name,
        _COMMITTED
        if name == "fsync_latency"
        else (*_COMMON, *_STREAMS)
        if name.endswith("_rw")
        else _COMMON,
    )
    for name in PRIMARY
}


def disk_run(trials: int = 4, *, limits: bool = True, peers: bool = True) -> ResultDocument:
    """Some sixty cases of everything that the section draws."""
    rng = random.Random(5)
    document = run_of(tuple(_cases()), rng, trials=trials, limits=limits, samples=5)
    if not peers:
        return document
    cases = tuple(_with_peer(case, rng) for case in document.cases)
    return document.model_copy(update={"cases": cases})


def run_of(
    cases: tuple[PlannedCase, ...],
    rng: random.Random,
    *,
    trials: int = 3,
    limits: bool = False,
    samples: int = 0,
    device: Device = FLASH,
) -> ResultDocument:
    """A document of these cases on such a device."""
    records: list[Record] = [
        session_of(
            "disk",
            cases,
            METRICS,
            job="20261123T120000Z-disk-3f2a",
            host=HOST,
            time_unix_s=BEGAN_UNIX_S,
        )
    ]
    for position, case in enumerate(cases):
        at_unix_s = BEGAN_UNIX_S + position * trials * (samples + 1.0)
        made = _Made(case, device, rng, samples, limits)
        records += made.records(at_unix_s, trials)
    return ended(records)


def planned_disk(workload: str, **params: Any) -> PlannedCase:
    """A case with the defaults of the workload's own parameters."""
    defaults: dict[str, Any] = {
        "threads": 1, "block_bytes": MIB if workload.startswith("seq") else 4 * KIB,
        "file_bytes": GIB, "compressible": 0, "steady_state": "off", "duration_s": 2.0,
    }  # fmt: skip
    if workload != "fsync_latency":
        defaults |= {"queue_depth": 1, "engine": "auto", "cache_mode": "direct", "verify": "off"}
    if workload.startswith("rand"):
        defaults["distribution"] = "uniform"
    if workload.endswith("_rw"):
        defaults["read_share"] = 0.5
    return PlannedCase(
        case=case_hash(f"disk.{workload}", params),
        workload=f"disk.{workload}",
        params=defaults | params,
        given=tuple(params),
        label=" ".join(param_word(old_meaning(name), value) for name, value in params.items()),
        block=0,
        repeats=REPEATS,
        trial_time_s=2.7,
        timeout_s=60,
    )


def _cases() -> Iterator[PlannedCase]:
    for workload in ("seq_read", "seq_write"):
        for block_bytes in (4 * KIB, 64 * KIB, 512 * KIB, MIB, 10 * MIB):
            yield planned_disk(workload, block_bytes=block_bytes)
        yield planned_disk(workload, queue_depth=8)
    yield planned_disk("seq_read", cache_mode="buffered")
    for mode in ("buffered", "buffered+fsync_end", "buffered+dsync"):
        yield planned_disk("seq_write", cache_mode=mode)
    yield planned_disk("seq_rw", read_share=0.7)
    for workload in ("rand_read", "rand_write"):
        for block_bytes in (512, 4 * KIB, 64 * KIB, MIB):
            yield planned_disk(workload, block_bytes=block_bytes)
        for depth in (2, 4, 16, 64, 256):
            yield planned_disk(workload, block_bytes=4 * KIB, queue_depth=depth)
        for threads in (2, 8, 32):
            yield planned_disk(workload, block_bytes=4 * KIB, threads=threads, engine="psync")
    for read_share in (0.7, 0.5):
        yield planned_disk("rand_rw", queue_depth=16, read_share=read_share)
    yield planned_disk("rand_read", rate=2000)
    yield planned_disk("rand_read", distribution="zipf", cache_mode="buffered")
    for block_bytes in (512, 4 * KIB, 64 * KIB):
        yield planned_disk("fsync_latency", block_bytes=block_bytes)
    yield planned_disk("rand_read", file_bytes=64 * KIB, block_bytes=100)


@dataclass(frozen=True)
class _Made:
    """The records of one case."""

    case: PlannedCase
    device: Device
    rng: random.Random
    samples: int
    limits: bool

    def records(self, at_unix_s: float, trials: int) -> Iterator[TrialRecord | CaseRecord]:
        if int(self.case.params["block_bytes"]) % 512:
            failure = TrialFailed(
                "usage", "--block-bytes 100: cache_mode direct needs a multiple of 512 here"
            )
            records = [failed_trial(bare_trial(0, self.case.case, events=()), failure)]
        else:
            records = [self._trial(index, at_unix_s) for index in range(trials)]
        yield from records
        yield done_record(self.case, records)

    def _trial(self, index: int, at_unix_s: float) -> TrialRecord:
        events = (self._start(), *self._samples(), *self._warnings(), self._end())
        each_s = self.samples + 1.0
        trial = bare_trial(
            index,
            self.case.case,
            events=events,
            time_unix_s=at_unix_s + index * each_s,
            wall_s=self.samples + 0.5,
        )
        return measured_trial(trial, METRICS[self.case.workload], self._limit())

    def _start(self) -> StartEvent:
        params = {"cpus": None, "rate": None, **self.case.params}
        if params.get("engine") == "auto":
            params["engine"] = "libaio"
        return start(program="disk-bench", workload=self._name, params=params)

    def _warnings(self) -> Iterator[WarningEvent]:
        if self._is_page_cache:
            yield self._warning("page_cache_measured")
        if self._is_contaminated:
            yield self._warning("cache_contaminated")
        if "total_bytes" in self.case.params:
            yield self._warning("sampled")
        if self.case.params.get("engine") == "auto":
            yield self._warning("engine_fallback", "io_uring is not allowed here")

    @staticmethod
    def _warning(code: str, message: str = "of a document for tests") -> WarningEvent:
        return WarningEvent(event="warning", code=code, message=message)

    def _samples(self) -> Iterator[SampleEvent]:
        primary = PRIMARY[self._name]
        for i in range(self.samples):
            figures = self._rates()
            latency_s = self._latency_s * self.rng.gauss(1.0, 0.02)
            metrics: dict[str, float | None] = {
                OPERATIONS: figures[OPERATIONS],
                BYTES: figures[BYTES],
                "latency_p50_s": latency_s,
                "latency_p99_s": latency_s * self.device.tail,
                **({primary: latency_s} if primary == COMMIT else {}),
            }
            yield SampleEvent(event="sample", t_s=i + 1.0, dt_s=1.0, metrics=metrics)

    def _end(self) -> EndEvent:
        rates = self._rates()
        count = rates[OPERATIONS] * float(self.case.params["duration_s"])
        metrics = {
            **rates,
            **self._latencies("", count),
            "cpu_seconds_per_million_operations": 5.2,
            **self._work(count),
            **self._evidence(rates),
        }
        if self._name.endswith("_rw"):
            share = float(self.case.params["read_share"])
            for stream, part in (("read", share), ("write", 1 - share)):
                metrics[f"{stream}_{OPERATIONS}"] = rates[OPERATIONS] * part
                metrics |= self._latencies(f"{stream}_", count * part)
        if self._name == "fsync_latency":
            metrics[COMMIT] = metrics["latency_p50_s"]
        # Work that waits for a device has no slices.
        return end(0.0, clean_slice_ratio=None, harness_ratio=None).model_copy(
            update={"metrics": metrics, "basis": "whole_run"}
        )

    def _work(self, count: float) -> dict[str, float | None]:
        """In what the figure counts."""
        if self._name.startswith("seq"):
            return {"work_bytes": count * float(self.case.params["block_bytes"])}
        return {"work_operations": count}

    def _latencies(self, prefix: str, count: float) -> dict[str, float | None]:
        """A tail that grows with the logarithm of how rare it is."""
        middle = self._latency_s * self.rng.gauss(1.0, 0.01)
        slope = (self.device.tail - 1) / math.log(50)
        figures = {
            f"{prefix}latency_{name}_s": middle * (1 + slope * math.log(0.5 / (1 - q)))
            if count >= LEAST[name]
            else None
            for name, q in QUANTILES.items()
        }
        plain = {"mean": middle * 1.1, "min": middle * 0.7, "max": middle * self.device.tail * 9}
        return {**figures, **{f"{prefix}latency_{name}_s": one for name, one in plain.items()}}

    def _rates(self) -> dict[str, float]:
        operations = self._at_a_time / self._latency_s * self.rng.gauss(1.0, 0.004)
        rate = self.case.params.get("rate")
        if rate is not None:
            operations = min(operations, float(rate))
        return {OPERATIONS: operations, BYTES: operations * int(self.case.params["block_bytes"])}

    def _evidence(self, rates: Mapping[str, float]) -> dict[str, float | None]:
        size, moved = float(self.case.params["file_bytes"]), rates[BYTES] * 2
        reads = not self._name.endswith(("write", "fsync_latency"))
        from_device = 0.02 if self._is_contaminated else 1.0
        cached = 1.0 if self._is_contaminated else 0.0
        return {
            "device_read_ratio": from_device if reads else None,
            "device_write_ratio": None if reads else 1.0,
            "cached_ratio_before": cached,
            "cached_ratio_after": 0.4 if self._is_buffered else 0.0,
            "diskstats_read_bytes": moved * from_device if reads else 0.0,
            "diskstats_write_bytes": 0.0 if reads else moved,
            "device_busy_ratio": 0.97,
            "planned_write_bytes": size if reads else size + moved,
            "prefilled_bytes": size,
            "prefill_s": size / self.device.bytes_per_second,
            "covered_bytes": size,
        }

    def _limit(self) -> dict[str, Limit]:
        if not self.limits or self._name == "fsync_latency":
            return {}
        if self._is_page_cache:
            reason = "buffered, and nothing waits for the device: the page cache has no limit"
            return {PRIMARY[self._name]: Limit(value=None, unit=self._unit, reason=reason)}
        source = "SATA 3.0: 6 Gbit/s less its 8b/10b code"
        block = float(self.case.params["block_bytes"])
        value = LINK if self._unit == "byte/s" else LINK / block
        factors = [Factor(name="link", value=LINK, unit="byte/s", source=source)]
        if self._unit != "byte/s":
            factors.append(
                Factor(name="blocks a byte", value=1 / block, unit="1/byte", source="the case")
            )
        limit = Limit(value=value, unit=self._unit, factors=tuple(factors))
        return {PRIMARY[self._name]: limit}

    @property
    def _unit(self) -> str:
        return "byte/s" if PRIMARY[self._name] == BYTES else "operation/s"

    @property
    def _name(self) -> str:
        return self.case.workload.removeprefix("disk.")

    @property
    def _is_buffered(self) -> bool:
        return not str(self.case.params.get("cache_mode")).startswith("direct")

    @property
    def _is_page_cache(self) -> bool:
        return self._name == "seq_write" and self.case.params.get("cache_mode") == "buffered"

    @property
    def _is_contaminated(self) -> bool:
        return self._name == "rand_read" and self.case.params.get("cache_mode") == "buffered"

    @property
    def _at_a_time(self) -> float:
        return float(self.case.params["threads"]) * float(self.case.params.get("queue_depth", 1))

    @property
    def _latency_s(self) -> float:
        """What one operation takes: its start, its transfer, and its wait for those before it."""
        block = float(self.case.params["block_bytes"])
        if self._is_page_cache or self._is_contaminated:
            return self._at_a_time * (1e-6 + block / 8e9)
        first_s = self.device.random_s if self._name.startswith("rand") else None
        one_s = (first_s or self.device.sequential_s) + block / self.device.bytes_per_second
        transfers_s = block / self.device.bytes_per_second * self._at_a_time
        return max(one_s * max(1.0, self._at_a_time / self.device.parallel), transfers_s)


def _with_peer(case: CaseResult, rng: random.Random) -> CaseResult:
    """fio beside what it can do the same of."""
    if not case.metrics or case.workload == "disk.fsync_latency":
        return case
    name = case.primary
    ours = [trial.end.metrics[name] or 0.0 for trial in case.trials[:3] if trial.end is not None]
    values = [value / rng.gauss(1.01, 0.004) for value in ours]
    ran = PeerResult(
        tool="fio",
        title=case.workload.removeprefix("disk."),
        version="3.33",
        measures="the same accesses to the same file, mean of the whole run",
        library=None,
        command=("fio", "--name=case", "--direct=1"),
        metric=name,
        unit=case.metrics[name].unit,
        statistics=describe(values),
        ratio=describe([a / b for a, b in zip(ours, values, strict=True)]),
        verdict=Verdict.CLEAN,
        reasons=(),
        trials=tuple(
            bare_trial(i, case.case, tool="fio", events=(), value=value)
            for i, value in enumerate(values)
        ),
    )
    return case.model_copy(update={"peers": (ran,)})
