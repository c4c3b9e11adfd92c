"""Result documents of the memory subsystem, from records: no program runs for them.

Bandwidths and latencies follow a plain model of a guest with two cores and three levels of cache,
with some spread; one case is skipped, one is above its limit, some are influenced by caches.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from hostbench.base.units import exact_bytes
from hostbench.judge.statistics import describe
from hostbench.judge.trial import measured_trial, skipped_trial
from hostbench.model.events import EndEvent, SkipEvent, StartEvent, WarningEvent
from hostbench.model.limit import Factor, Limit
from hostbench.model.result import (
    CaseRecord,
    CaseResult,
    PeerResult,
    PlannedCase,
    Reason,
    Record,
    ResultDocument,
    TrialRecord,
    Verdict,
)
from hostbench.model.suite import Repeats
from hostbench.model.table import Direction, Metric
from hostbench.plan.workloads import case_hash
from tests.unit.records import bare_trial, end, session_of, start
from tests.unit.report_documents import BEGAN_UNIX_S, HOST, done_record, ended

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BANDWIDTH, TIME, JUMP = "bytes_per_second", "access_time_s", "jump_time_s"
STREAM_BYTES = {"read": 8, "write": 8, "copy": 16, "scale": 16, "add": 24, "triad": 24}
REPEATS = Repeats(min_trials=3, max_trials=5)
LIMIT = 8 * 64e9
# The largest working set of each level, and the time of an access there: huge pages, 4 KiB pages.
LEVELS = (
    (48 * KIB, 1.25e-9, 1.25e-9),
    (2 * MIB, 4.8e-9, 6.1e-9),
    (480 * MIB, 58e-9, 84e-9),
    (1 << 60, 167e-9, 397e-9),
)
UNVARIED = ("huge_page_ratio", "bytes_per_cycle")
# The accesses that a core keeps in flight, and its clock.
IN_FLIGHT, HERTZ = 12, 3.5e9


def _metric(
    name: str, unit: str, *, primary: bool = False, direction: Direction = "higher"
) -> Metric:
    return Metric(
        name=name,
        unit=unit,
        direction=direction,
        primary=primary,
        description=f"{name.replace('_', ' ')}, of a document for tests",
    )


HUGE = _metric("huge_page_ratio", "1")
BANDWIDTH_METRICS = (
    _metric(BANDWIDTH, "byte/s", primary=True),
    _metric(f"{BANDWIDTH}_makespan", "byte/s"),
    *(_metric(f"{BANDWIDTH}_{store}", "byte/s") for store in ("plain", "nt", "libc")),
    *(
        _metric(f"block_time_s_{quantile}", "s", direction="lower")
        for quantile in ("median", "p99", "p999", "max")
    ),
    _metric("bytes_per_cycle", "byte/cycle"),
    HUGE,
)
LATENCY_METRICS = (_metric(TIME, "s", primary=True, direction="lower"), HUGE)
LOADED_METRICS = (*LATENCY_METRICS, _metric("load_bytes_per_second", "byte/s"))
JUMP_METRICS = (
    _metric(JUMP, "s", primary=True, direction="lower"),
    _metric("jump_cycles", "cycle", direction="lower"),
    HUGE,
)
ACCESS_METRICS = (
    *LATENCY_METRICS,
    _metric(f"{TIME}_empty", "s", direction="lower"),
    _metric(f"{TIME}_net", "s", direction="lower"),
    _metric("empty_loop_ratio", "1", direction="lower"),
    _metric("accesses_per_second", "operation/s"),
)
NODE_METRICS = (
    *LATENCY_METRICS,
    *(_metric(f"{TIME}_{pair}", "s", direction="lower") for pair in ("nearest", "farthest")),
)
METRICS = {
    **{f"mem.{kernel}": BANDWIDTH_METRICS for kernel in STREAM_BYTES},
    "mem.read_write": BANDWIDTH_METRICS,
    "mem.memset_write": BANDWIDTH_METRICS,
    "mem.pointer_chase": LATENCY_METRICS,
    "mem.loaded_latency": LOADED_METRICS,
    "mem.random_access": ACCESS_METRICS,
    "mem.code_chase": JUMP_METRICS,
    "mem.numa": NODE_METRICS,
}


def memory_run(trials: int = 4, *, limits: bool = True, peers: bool = True) -> ResultDocument:
    """Some ninety cases of everything that the section draws."""
    rng = random.Random(3)
    document = run_of(tuple(_cases()), rng, trials=trials, limits=limits)
    if not peers:
        return document
    cases = tuple(_with_peers(case, rng) for case in document.cases)
    return document.model_copy(update={"cases": cases})


def run_of(
    cases: tuple[PlannedCase, ...],
    rng: random.Random,
    *,
    trials: int = 3,
    limits: bool = False,
) -> ResultDocument:
    """A document of these cases."""
    records: list[Record] = [
        session_of(
            "mem",
            cases,
            METRICS,
            job="20261122T120000Z-memory-3f2a",
            host=HOST,
            time_unix_s=BEGAN_UNIX_S,
        )
    ]
    for position, case in enumerate(cases):
        records += _records(case, BEGAN_UNIX_S + position * trials, trials, rng, limits=limits)
    return ended(records)


def planned_memory(workload: str, **params: Any) -> PlannedCase:
    """A case with the defaults of the workload's own parameters."""
    defaults: dict[str, Any] = {
        "threads": 2, "pages": "huge", "size_bytes": "auto", "isa": "best", "duration_s": 0.5,
    }  # fmt: skip
    if workload in ("write", "copy", "scale", "add", "triad"):
        defaults["store"] = "best"
    if workload in STREAM_BYTES or workload in ("read_write", "memset_write"):
        defaults["pattern"] = "sequential"
    if workload == "code_chase":
        defaults |= {"pattern": "random", "stride_bytes": 64}
    words = [_word(name, value) for name, value in params.items() if name != "threads"]
    threads = params.get("threads", 2)
    words.append("1 thread" if threads == 1 else f"{threads} threads")
    return PlannedCase(
        case=case_hash(f"mem.{workload}", params),
        workload=f"mem.{workload}",
        params=defaults | params,
        given=tuple(params),
        label=" ".join(words),
        block=0,
        repeats=REPEATS,
        trial_time_s=0.7,
        timeout_s=30,
    )


def _word(name: str, value: object) -> str:
    """As the plan has it."""
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{name.removesuffix('_bytes')} {exact_bytes(value)}"
    return str(value) if str(value)[0].isalpha() else f"{name}={value}"


def _cases() -> Iterator[PlannedCase]:
    for kernel in STREAM_BYTES:
        for threads in (1, 2):
            for pages in ("huge", "4k"):
                yield planned_memory(kernel, threads=threads, pages=pages)
    yield planned_memory("triad", threads=2, pages="hugetlb")
    for store in ("plain", "nt", "libc"):
        for kernel in ("write", "copy"):
            yield planned_memory(kernel, threads=2, store=store)
    for pages in ("huge", "4k"):
        for exponent in range(12, 31, 2):
            yield planned_memory("pointer_chase", threads=1, pages=pages, size_bytes=1 << exponent)
    for load in ("read", "copy"):
        for intensity in (0, 0.2, 0.4, 0.6, 0.8, 1):
            yield planned_memory("loaded_latency", threads=2, load=load, intensity=intensity)
    for operation in ("read", "write", "update"):
        for block_bytes in (1, 8, 64):
            yield planned_memory(
                "random_access", threads=1, operation=operation, block_bytes=block_bytes
            )
    for pattern in ("sequential", "random"):
        for block_bytes in (1, 64, 4 * KIB, 64 * KIB, MIB, 64 * MIB, GIB):
            yield planned_memory("read_write", threads=2, pattern=pattern, block_bytes=block_bytes)


def _records(
    case: PlannedCase, at_unix_s: float, trials: int, rng: random.Random, *, limits: bool
) -> Iterator[TrialRecord | CaseRecord]:
    records: list[TrialRecord] = []
    if case.params["pages"] == "hugetlb":
        skip = SkipEvent(event="skip", reason="there are no pages in /proc/sys/vm/nr_hugepages")
        records.append(skipped_trial(bare_trial(0, case.case, events=(skip,))))
    else:
        for index in range(trials):
            events = (_start(case), *_warnings(case), _end(case, rng))
            trial = bare_trial(index, case.case, events=events, time_unix_s=at_unix_s + index)
            held = _limit(case) if limits else {}
            records.append(measured_trial(trial, METRICS[case.workload], held))
    yield from records
    yield done_record(case, records)


def _start(case: PlannedCase) -> StartEvent:
    size = case.params["size_bytes"]
    found: dict[str, Any] = {"size_bytes": 2 * GIB if size == "auto" else size, "cpus": None}
    if case.params.get("store") == "best":
        found["store"] = "nt"
    return start(
        program="mem-bench",
        workload=case.workload.removeprefix("mem."),
        params={**case.params, "isa": "avx512", **found},
    )


def _warnings(case: PlannedCase) -> Iterator[WarningEvent]:
    if case.workload == "mem.copy":
        yield WarningEvent(
            event="warning",
            code="cache_influenced",
            message="the working set of 2 GiB is below 4 times the last-level caches",
        )


def _end(case: PlannedCase, rng: random.Random) -> EndEvent:
    metrics = {
        name: value if name in UNVARIED else value * rng.gauss(1.0, 0.004)
        for name, value in _figures(case).items()
    }
    return end(0.0).model_copy(update={"metrics": metrics})


def _figures(case: PlannedCase) -> Mapping[str, float]:
    params, workload = case.params, case.workload.removeprefix("mem.")
    huge = {"huge_page_ratio": 0.0 if params["pages"] == "4k" else 1.0}
    if workload == "pointer_chase":
        size = 2 * GIB if params["size_bytes"] == "auto" else int(params["size_bytes"])
        time_s = _latency(size, str(params["pages"]))
        return {TIME: time_s / min(int(params.get("chains", 1)), IN_FLIGHT), **huge}
    if workload == "numa":
        return {TIME: 160e-9, f"{TIME}_nearest": 98e-9, f"{TIME}_farthest": 205e-9, **huge}
    if workload == "code_chase":
        time_s = _latency(int(params["size_bytes"]), str(params["pages"])) / 2
        time_s /= 4 if params["pattern"] == "sequential" else 1
        return {JUMP: time_s, "jump_cycles": time_s * HERTZ, **huge}
    if workload == "loaded_latency":
        share = float(params["intensity"])
        return {
            TIME: 167e-9 * (1 + 0.2 * share + 0.9 * share**6),
            "load_bytes_per_second": 62e9 * share * (1 - 0.1 * share),
            **huge,
        }
    if workload == "random_access":
        raw = {"read": 6.9e-9, "write": 9.4e-9, "update": 12e-9}[str(params["operation"])]
        empty = 2.4e-9 if params["block_bytes"] == 1 else 0.44e-9
        return {
            TIME: raw,
            f"{TIME}_empty": empty,
            f"{TIME}_net": raw - empty,
            "empty_loop_ratio": empty / raw,
            "accesses_per_second": 1 / raw,
            **huge,
        }
    return {**_bandwidths(workload, params), **huge}


def _latency(size: int, pages: str) -> float:
    return next(small if pages == "4k" else huge for most, huge, small in LEVELS if size <= most)


def _bandwidths(workload: str, params: Mapping[str, Any]) -> dict[str, float]:
    value = 36e9 * int(params["threads"]) ** 0.95
    value *= {"read": 0.8, "write": 0.75}.get(workload, 1.0)
    value *= {"4k": 0.7, "huge": 1.0}[params["pages"]]
    value *= {"plain": 0.6, "libc": 0.9}.get(params.get("store", ""), 1.0)
    block = params.get("block_bytes")
    if block is not None:
        value *= block / (block + (200 if params["pattern"] == "sequential" else 3000))
    # A figure above the limit: invalid.
    if workload == "scale" and params["threads"] == 2 and params["pages"] == "huge":
        value = LIMIT * 1.1
    figures = {BANDWIDTH: value, f"{BANDWIDTH}_makespan": value * 0.99}
    figures["bytes_per_cycle"] = value / int(params["threads"]) / HERTZ
    if params.get("store") == "best":
        figures |= {f"{BANDWIDTH}_plain": value * 0.6, f"{BANDWIDTH}_nt": value}
    if params.get("store") == "best" and workload in ("write", "copy"):
        figures[f"{BANDWIDTH}_libc"] = value * 0.9
    if block is not None and block >= 8 * KIB:
        for quantile, times in (("median", 1.0), ("p99", 1.3), ("p999", 2.2), ("max", 9.0)):
            figures[f"block_time_s_{quantile}"] = times * block * 2 / value
    return figures


def _limit(case: PlannedCase) -> dict[str, Limit]:
    if METRICS[case.workload] is not BANDWIDTH_METRICS:
        return {}
    source = "SMBIOS type 17 of this host"
    factors = (
        Factor(name="channels", value=8.0, unit="channel", source=source),
        Factor(name="bytes_per_second", value=LIMIT / 8, unit="byte/s", source=source),
    )
    return {BANDWIDTH: Limit(value=LIMIT, unit="byte/s", factors=factors)}


def _with_peers(case: CaseResult, rng: random.Random) -> CaseResult:
    """likwid-bench where the pages are its own; sysbench is not there."""
    if case.params["pages"] != "4k" or case.workload not in ("mem.copy", "mem.triad"):
        return case
    name = f"{BANDWIDTH}_makespan"
    ours = [trial.end.metrics[name] or 0.0 for trial in case.trials[:3] if trial.end is not None]
    values = [value / rng.gauss(1.02, 0.004) for value in ours]
    kernel = f"{case.workload.removeprefix('mem.')}_mem_avx512"
    ran = PeerResult(
        tool="likwid-bench",
        title=kernel,
        version="5.2.2",
        measures="STREAM's kernel with non-temporal stores, 4 KiB pages, mean of the whole run",
        library=None,
        command=("likwid-bench", "-t", kernel, "-W", "N:2GB:2"),
        metric=name,
        unit="byte/s",
        statistics=describe(values),
        ratio=describe([a / b for a, b in zip(ours, values, strict=True)]),
        verdict=Verdict.CLEAN,
        reasons=(),
        trials=tuple(
            bare_trial(i, case.case, tool="likwid-bench", events=(), value=value)
            for i, value in enumerate(values)
        ),
    )
    missing = ran.model_copy(
        update={
            "tool": "sysbench",
            "title": "memory",
            "version": None,
            "statistics": None,
            "ratio": None,
            "verdict": Verdict.SKIPPED,
            "reasons": (Reason(code="not_installed", text="sysbench is not installed"),),
            "trials": (),
        }
    )
    return case.model_copy(update={"peers": (ran, missing)})
