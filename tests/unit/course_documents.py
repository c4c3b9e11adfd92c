"""A document whose suite reruns a published report, made from records: no program runs for it.

The published rows are some of the first course report's; what was measured here is made up.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from hostbench.judge.trial import failed_trial, measured_trial, unmeasured_trial
from hostbench.model.events import SampleEvent
from hostbench.model.limit import Factor, Limit
from hostbench.model.published import Published
from hostbench.model.result import (
    PlannedCase,
    Record,
    ResultDocument,
    TrialRecord,
)
from hostbench.model.suite import Repeats, Suite, SuiteCase
from hostbench.model.table import Metric
from hostbench.model.trial import TrialFailed
from hostbench.plan.workloads import case_hash
from tests.unit.records import RATE, bare_trial, end, host, session, start
from tests.unit.report_documents import BEGAN_UNIX_S, METRICS, done_record, ended

GIGA = 1e-9
BYTES = "bytes_per_second"
BYTE_METRICS = (
    Metric(name=BYTES, unit="byte/s", direction="higher", primary=True, description="bytes"),
)
CLOCK = "dependent-add chain measured in this trial"

# What a case gives here, in its own unit; the naive figures are off by a known factor.
SOUND, NAIVE = 8e9, 2e9
COPIED, NAIVE_COPIED = 12e9, 3e9

PUBLISHED: dict[str, Any] = {
    "title": "A virtual machine of two CPUs.",
    "host": {"name": "an instance", "cpu": "Haswell, 2.29 GHz", "cpus": 2, "memory_bytes": 4 << 30},
    "tables": (
        {
            "name": "cpu",
            "title": "CPU speed",
            "subsystem": "cpu",
            "source": "tables GIOPS and GFLOPS",
            "unit": "GFLOP/s",
            "key": ("threads",),
            "series": {
                "int": {
                    "ours": {
                        "workload": "cpu.add_sub",
                        "params": {"dtype": "int32"},
                        "factor": GIGA,
                    },
                    "naive": {
                        "workload": "cpu.naive_operations",
                        "params": {"dtype": "int32"},
                        "factor": GIGA,
                    },
                },
                "double": {
                    "ours": {
                        "workload": "cpu.add_sub",
                        "params": {"dtype": "fp64"},
                        "factor": GIGA,
                    },
                },
            },
            "columns": ("repeats", "mean", "deviation", "limit", "efficiency"),
            "rows": (
                ("int", 1, [4.189944, 4.231312, 4.297994], 4.23975, 0.044513, None, None),
                ("int", 2, [4.010695, 4.160888, 4.304161], 5.5, 0.119818, None, None),
                ("int", 8, [4.137931, 4.243281, 4.137931], 4.173048, 0.049662, None, None),
                ("double", 1, None, 2.339747, 0.070104, 36.64, 6.39),
                ("double", 2, None, 2.298652, 0.029826, 36.64, 12.5),
                ("double", 8, None, 2.319411, 0.04896, 36.64, None),
            ),
            "theory": "2.29 GHz × 2 × 8 = 36.64 GFLOPS",
            "remarks": ("It calls 30 operations one.",),
            "shortcuts": ("loop_counted", "operands_in_memory", "few_runs"),
            "trusted": (
                {
                    "title": "LINPACK",
                    "published": 35.6,
                    "unit": "GFLOP/s",
                    "ours": {"workload": "cpu.add_sub", "factor": GIGA},
                },
                {"title": "a tool of its own", "published": 7, "unit": "GFLOP/s"},
            ),
        },
        {
            "name": "memory",
            "title": "Memory latency",
            "subsystem": "mem",
            "source": "tables Latency",
            "unit": "µs",
            "better": "lower",
            "key": ("block_bytes", "threads"),
            "series": {
                "copy": {
                    "ours": {"workload": "mem.read_write", "reading": "time", "factor": 2e6},
                    "naive": {"workload": "mem.naive_copy", "reading": "time", "factor": 1e6},
                }
            },
            "columns": ("mean", "limit", "efficiency"),
            "rows": (
                ("copy", 8, 1, 0.0071773, 0.01406, 51.05),
                ("copy", 8192, 1, 304, None, None),
                ("copy", 8, 2, 0.009313, 0.01406, 66.24),
                ("copy", 8192, 2, 304, None, None),
            ),
            "shortcuts": ("clock_per_operation", "time_per_block", "copied_once"),
        },
        {
            "name": "samples",
            "title": "600 samples",
            "subsystem": "cpu",
            "kind": "samples",
            "source": "the plots",
            "unit": "GFLOP/s",
            "key": ("threads",),
            "series": {"double": {"ours": {"workload": "cpu.fma", "factor": GIGA}}},
            "rows": (("double", 8),),
        },
        {
            "name": "net",
            "title": "TCP, two nodes",
            "subsystem": "net",
            "source": "table TCP, 2 nodes",
            "unit": "Mb/s",
            "key": ("streams",),
            "series": {"TCP": {"ours": {"workload": "net.tcp_stream", "factor": 8e-6}}},
            "columns": ("mean",),
            "rows": (("TCP", 1, 510.824), ("TCP", 2, 505.96)),
        },
    ),
}
NO_FAR_HOST = "the job has no second host"


def course_run(trials: int = 3, published: dict[str, Any] | None = None) -> ResultDocument:
    """Cases of each table: measured both ways, failed, skipped, and left out of the suite."""
    rng = random.Random(3)
    cases = list(_cases(Repeats(min_trials=min(3, trials), max_trials=15)))
    workloads: dict[str, tuple[Metric, ...]] = dict.fromkeys(
        ("cpu.add_sub", "cpu.naive_operations", "cpu.fma"), METRICS
    )
    workloads |= dict.fromkeys(("mem.read_write", "mem.naive_copy", "net.tcp_stream"), BYTE_METRICS)
    records: list[Record] = [
        session(
            tuple(cases),
            job="20261122T170000Z-cs553-3f2a",
            host=host(),
            time_unix_s=BEGAN_UNIX_S,
            suite=Suite(
                name="cs553-some",
                cases=tuple(SuiteCase(workload=name) for name in workloads),
                scale="quick",
                published=Published.model_validate(published or PUBLISHED),
            ),
            workloads=workloads,
        )
    ]
    for case in cases:
        found = list(_trials(case, trials, rng))
        records += [*found, done_record(case, list(found))]
    return ended(records)


def _cases(repeats: Repeats) -> Iterator[PlannedCase]:
    for threads in (1, 2, 8):
        for dtype in ("int32", "fp64"):
            yield _case("cpu.add_sub", repeats, dtype=dtype, threads=threads)
    for threads in (1, 2):
        yield _case("cpu.naive_operations", repeats, naive=True, dtype="int32", threads=threads)
    for block in (8, 8192):
        for threads in (1, 2):
            yield _case("mem.read_write", repeats, block_bytes=block, threads=threads)
            yield _case("mem.naive_copy", repeats, naive=True, block_bytes=block, threads=threads)
    yield _case("cpu.fma", Repeats(min_trials=1, max_trials=1), threads=8)
    yield _case("net.tcp_stream", repeats, skip=NO_FAR_HOST, streams=1)


def _case(
    workload: str, repeats: Repeats, *, naive: bool = False, skip: str | None = None, **given: Any
) -> PlannedCase:
    return PlannedCase(
        case=case_hash(workload, given),
        workload=workload,
        params={**given, "duration_s": 0.3},
        given=tuple(given),
        label=" ".join(f"{name}={value}" for name, value in given.items()),
        block=0,
        repeats=repeats,
        trial_time_s=0.4,
        timeout_s=30,
        naive=naive,
        skip=skip,
    )


def _trials(case: PlannedCase, trials: int, rng: random.Random) -> Iterator[TrialRecord]:
    if case.skip is not None:
        yield unmeasured_trial(case, case.skip)
        return
    if case.workload == "mem.naive_copy" and case.params["threads"] == 2:
        failure = TrialFailed("killed", "the program was ended by SIGKILL")
        yield failed_trial(bare_trial(0, case.case, events=()), failure)
        return
    for index in range(case.repeats.max_trials if case.workload == "cpu.fma" else trials):
        yield _trial(case, index, rng)


def _trial(case: PlannedCase, index: int, rng: random.Random) -> TrialRecord:
    value = _value(case) * rng.gauss(1.0, 0.01)
    is_memory = case.workload.startswith("mem.")
    closing = end(value)
    if is_memory:
        closing = closing.model_copy(update={"metrics": {BYTES: value}})
    events = (start(params=dict(case.params)), *_samples(case, value), closing)
    trial = bare_trial(index, case.case, events=events, time_unix_s=BEGAN_UNIX_S + index)
    metrics: Sequence[Metric] = BYTE_METRICS if is_memory else METRICS
    return measured_trial(trial, metrics, {} if case.naive or is_memory else _limit())


def _value(case: PlannedCase) -> float:
    if case.workload.startswith("mem."):
        return (NAIVE_COPIED if case.naive else COPIED) / (
            10 if case.params["block_bytes"] == 8 else 1
        )
    return (NAIVE if case.naive else SOUND) * min(2, int(case.params["threads"]))


def _limit() -> dict[str, Limit]:
    factors = (
        Factor(name="clock_hertz", value=2e9, unit="Hz", source=CLOCK),
        Factor(name="operations_per_cycle", value=16.0, unit="operation/cycle", source="a table"),
    )
    return {RATE: Limit(value=32e9, unit="operation/s", factors=factors)}


def _samples(case: PlannedCase, value: float) -> tuple[SampleEvent, ...]:
    count = 600 if case.workload == "cpu.fma" else 0
    return tuple(
        SampleEvent(event="sample", t_s=i + 1.0, dt_s=1.0, metrics={RATE: value * (1 - i % 7 / 50)})
        for i in range(count)
    )
