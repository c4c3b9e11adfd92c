"""Result documents as a full run makes them, from records: no program runs for them.

The figures are those of a quiet Granite Rapids guest with two cores, with the spread that the real
program shows there; a few cases are disturbed, above their limit, skipped or failed.
"""

import random
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from hostbench.judge.figure import Measured
from hostbench.judge.statistics import describe
from hostbench.judge.trial import failed_trial, measured_trial, skipped_trial
from hostbench.judge.verdict import case_verdict
from hostbench.model.events import Event, SampleEvent, SkipEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import Factor, Limit
from hostbench.model.result import (
    CaseRecord,
    CaseResult,
    JobState,
    PeerResult,
    PlannedCase,
    Reason,
    Record,
    ResultDocument,
    StateRecord,
    StopReason,
    TrialRecord,
    Verdict,
)
from hostbench.model.suite import Repeats, Suite, SuiteCase
from hostbench.model.table import Metric
from hostbench.model.trial import TrialFailed
from hostbench.plan.workloads import case_hash
from hostbench.results.document import assemble, replay
from hostbench.results.document import summarise as summary_of
from hostbench.results.journal import JournalWriter
from hostbench.results.store import JobDirectory, ResultsStore
from tests.unit.records import RATE, bare_trial, end, placement, session, start

HOST = HostInventory.model_validate_json(
    (Path(__file__).parent / "fixtures" / "host.json").read_bytes()
)
CLOCK_HERTZ = 3.3e9
BEGAN_UNIX_S = 1.7952e9
MAKESPAN = f"{RATE}_makespan"

METRICS = (
    Metric(
        name=RATE,
        unit="operation/s",
        direction="higher",
        primary=True,
        description="operations a second: sum over the threads of the median of their clean slices",
    ),
    Metric(
        name=MAKESPAN,
        unit="operation/s",
        direction="higher",
        primary=False,
        description="all work / (last stop - first start)",
    ),
    Metric(
        name="clean_slice_ratio",
        unit="1",
        direction="higher",
        primary=False,
        description="share of slices that ran without interruption",
    ),
    Metric(
        name="clock_hertz",
        unit="Hz",
        direction="higher",
        primary=False,
        description="core clock under the kernel",
    ),
)
CLOCK_METRICS = (
    Metric(
        name="clock_hertz", unit="Hz", direction="higher", primary=True, description="core clock."
    ),
)

# Operations per cycle and core at 512 bits; narrower vectors have their share of it.
WIDTHS = {"scalar": 64, "sse2": 128, "avx2": 256, "avx512": 512}
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "fp32": 32, "fp64": 64}
FLOATS, INTEGERS = ("fp64", "fp32"), ("int8", "int16", "int32", "int64")
WORKLOADS: dict[str, tuple[tuple[str, ...], tuple[str, ...], float]] = {
    "fma": (FLOATS, tuple(WIDTHS), 4),
    "fma_add": (FLOATS, tuple(WIDTHS), 3),
    "mul_add": (FLOATS, tuple(WIDTHS), 2),
    "add_sub": ((*INTEGERS, *FLOATS), tuple(WIDTHS), 2),
    "int_mul": (INTEGERS, ("scalar", "avx2", "avx512"), 1),
    "int_mul_add": (INTEGERS, ("scalar", "avx2", "avx512"), 1.5),
    "compare": ((*INTEGERS, "fp64"), ("scalar", "avx2", "avx512"), 1),
    "gemm": (FLOATS, ("avx512",), 4),
    "linpack": (("fp64",), ("avx512",), 4),
}


def full_run(trials: int = 8, workloads: Collection[str] = tuple(WORKLOADS)) -> ResultDocument:
    """Up to 182 cases of the CPU, with peers, and at least one of every verdict but noisy."""
    rng = random.Random(1)
    repeats = Repeats(min_trials=min(5, trials), max_trials=15)
    cases = [case for case in _cases(repeats) if case.workload[4:] in {"clock", *workloads}]
    records: list[Record] = [
        session(
            tuple(cases),
            job="20261120T205638Z-full-3f2a",
            host=HOST,
            time_unix_s=BEGAN_UNIX_S,
            suite=Suite(
                name="full",
                cases=tuple(SuiteCase(workload=f"cpu.{name}") for name in WORKLOADS),
            ),
            workloads={f"cpu.{name}": METRICS for name in WORKLOADS} | {"cpu.clock": CLOCK_METRICS},
        )
    ]
    for position, case in enumerate(cases):
        records += _records(case, position, trials, rng)
    document = ended(records)
    return document.model_copy(
        update={"cases": tuple(_with_peers(case, rng) for case in document.cases)}
    )


def sampled_run(samples: int = 600, cases: int = 2, trials: int = 1) -> ResultDocument:
    """Long trials with a sample a second."""
    rng = random.Random(2)
    planned = [
        _planned("add_sub", dtype, "avx512", 8, Repeats(min_trials=1, max_trials=15))
        for dtype in tuple(BITS)[:cases]
    ]
    records: list[Record] = [
        session(
            tuple(planned),
            job="20261120T205638Z-samples-3f2a",
            host=HOST,
            time_unix_s=BEGAN_UNIX_S,
            workloads={"cpu.add_sub": METRICS},
        )
    ]
    for position, case in enumerate(planned):
        for index in range(trials):
            value, limit = _value(case, rng), _limit(case)
            events = (_start(case), *_samples(value, samples, rng), _end(case, value))
            at_unix_s = BEGAN_UNIX_S + (position * trials + index) * (samples + 1.0)
            trial = bare_trial(
                index, case.case, events=events, time_unix_s=at_unix_s, wall_s=samples + 0.3
            )
            records.append(measured_trial(trial, METRICS, limit))
        records.append(done_record(case, records))
    return ended(records)


def stored(document: ResultDocument, results: Path) -> JobDirectory:
    """The document where `hostbench report` finds it."""
    path = results / document.job.id
    path.mkdir(parents=True)
    job = JobDirectory(path)
    with JournalWriter(job.journal, create=True) as journal:
        journal.append(session(job=document.job.id))
    job.store(document)
    return ResultsStore(results).job(job.id)


def _cases(repeats: Repeats) -> Iterator[PlannedCase]:
    yield _planned("clock", None, None, 1, repeats)
    for name, (dtypes, isas, _) in WORKLOADS.items():
        for dtype in dtypes:
            for isa in isas:
                for threads in (1, 2):
                    yield _planned(name, dtype, isa, threads, repeats)
    yield _planned("fma", "fp64", "neon", 2, repeats)


def _planned(
    name: str, dtype: str | None, isa: str | None, threads: int, repeats: Repeats
) -> PlannedCase:
    given = {"dtype": dtype, "isa": isa, "threads": threads}
    params = {key: value for key, value in given.items() if value is not None}
    words = [dtype, isa, "1 thread" if threads == 1 else f"{threads} threads"]
    return PlannedCase(
        case=case_hash(f"cpu.{name}", params),
        workload=f"cpu.{name}",
        params={**params, "duration_s": 0.5},
        given=tuple(params),
        label=" ".join(word for word in words if word),
        block=0,
        repeats=repeats,
        trial_time_s=0.7,
        timeout_s=30,
    )


def _records(
    case: PlannedCase, position: int, trials: int, rng: random.Random
) -> Iterator[TrialRecord | CaseRecord]:
    at_unix_s = BEGAN_UNIX_S + position * trials * 0.8
    records: list[TrialRecord] = []
    if case.params.get("isa") == "neon":
        skip = SkipEvent(event="skip", reason="neon needs an aarch64 CPU")
        records.append(skipped_trial(bare_trial(0, case.case, events=(skip,))))
    elif case.workload == "cpu.linpack" and case.params["threads"] == 1:
        failure = TrialFailed(
            "killed", "the program was ended by SIGKILL <script>alert(1)</script>"
        )
        records.append(failed_trial(bare_trial(0, case.case, events=()), failure))
    else:
        disturbed = position % 23 == 7
        for index in range(trials):
            trial_disturbed = disturbed or rng.random() < 0.04
            records.append(_trial(case, index, at_unix_s + index * 0.8, trial_disturbed, rng))
    yield from records
    yield done_record(case, records)


def _trial(
    case: PlannedCase, index: int, at_unix_s: float, disturbed: bool, rng: random.Random
) -> TrialRecord:
    value = _value(case, rng)
    if case.workload == "cpu.compare" and case.params["dtype"] == "int16":
        value *= 1.1  # above the limit: invalid
    seen: dict[str, Any] = {}
    if disturbed:
        share = rng.uniform(0.3, 0.9)
        value *= rng.uniform(0.8, 1.0)
        seen = {"cpu_ratio": share, "clean_slice_ratio": share * 0.8, "steal_s": 0.02}
    events: tuple[Event, ...] = (_start(case), _end(case, value, **seen))
    trial = bare_trial(index, case.case, events=events, time_unix_s=at_unix_s)
    if case.workload == "cpu.clock":
        unknown = Limit(value=None, unit="Hz", reason="no sound source for the highest clock")
        return measured_trial(trial, CLOCK_METRICS, {"clock_hertz": unknown})
    return measured_trial(trial, METRICS, _limit(case))


def _value(case: PlannedCase, rng: random.Random) -> float:
    if case.workload == "cpu.clock":
        return CLOCK_HERTZ * rng.gauss(1.0, 0.002)
    limit = _limit(case)[RATE].value
    assert limit is not None
    return limit * min(1.0, rng.gauss(0.985, 0.004))


def _limit(case: PlannedCase) -> dict[str, Limit]:
    dtype, isa = str(case.params["dtype"]), str(case.params["isa"])
    lanes = 1 if isa == "scalar" else WIDTHS[isa] // BITS[dtype]
    per_cycle = WORKLOADS[case.workload.removeprefix("cpu.")][2] * lanes
    cores = float(min(2, int(case.params["threads"])))
    factors = (
        Factor(
            name="clock",
            value=CLOCK_HERTZ,
            unit="Hz",
            source="dependent-add chain measured in this trial under the same vector licence",
        ),
        Factor(
            name="operations_per_cycle",
            value=per_cycle,
            unit="operation/cycle",
            source=f"Intel Golden Cove server family: {case.workload} {dtype} ({isa}) × {lanes} "
            "lanes (OSACA spr.yml; measured for this table on a Granite Rapids virtual machine)",
        ),
        Factor(name="cores", value=cores, unit="core", source="distinct cores used"),
    )
    return {RATE: Limit(value=CLOCK_HERTZ * per_cycle * cores, unit="operation/s", factors=factors)}


def _start(case: PlannedCase) -> Any:
    threads = int(case.params["threads"])
    return start(
        workload=case.workload.removeprefix("cpu."),
        params={**case.params, "cpus": None},
        placement=placement(
            cpus=tuple(i % 2 for i in range(threads)),
            cores=min(2, threads),
            oversubscribed=threads > 2,
        ),
    )


def _end(case: PlannedCase, value: float, **disturbance: Any) -> Any:
    if int(case.params["threads"]) > 2:
        disturbance = {"cpu_ratio": 2 / int(case.params["threads"]), **disturbance}
    plain = end(value, **disturbance)
    if case.workload == "cpu.clock":
        return plain.model_copy(update={"metrics": {"clock_hertz": value}})
    metrics = {
        RATE: value,
        MAKESPAN: value * 0.994,
        "clean_slice_ratio": plain.disturbance.clean_slice_ratio,
        "clock_hertz": CLOCK_HERTZ,
    }
    return plain.model_copy(update={"metrics": metrics})


def _samples(value: float, count: int, rng: random.Random) -> Iterator[SampleEvent]:
    """A second each; something else runs for a while in the middle."""
    for i in range(count):
        busy = count * 0.4 < i < count * 0.5
        share = rng.uniform(0.4, 0.7) if busy else rng.uniform(0.98, 1.0)
        yield SampleEvent(
            event="sample",
            t_s=i + 1.0,
            dt_s=1.0,
            metrics={
                RATE: value * share,
                "clean_slice_ratio": share * share,
                "clock_hertz": None if i % 97 == 5 else CLOCK_HERTZ * rng.gauss(1.0, 0.001),
            },
        )


def done_record(case: PlannedCase, records: list[Any]) -> CaseRecord:
    trials = [one for one in records if isinstance(one, TrialRecord) and one.case == case.case]
    measured = Measured(case, METRICS, trials)
    figures = describe(measured.values) if measured.values else None
    verdict, _ = case_verdict(measured, figures, None)
    return CaseRecord(case=case.case, stopped=StopReason.TARGET_REACHED, verdict=verdict)


def ended(records: list[Record]) -> ResultDocument:
    progress = replay(records)
    now_unix_s = BEGAN_UNIX_S + 1234
    progress.ended = StateRecord(
        time_unix_s=now_unix_s,
        state=JobState.SUCCEEDED,
        summary=summary_of(progress, JobState.SUCCEEDED, now_unix_s),
    )
    return assemble(progress)


# ---- peers ----


def _with_peers(case: CaseResult, rng: random.Random) -> CaseResult:
    ours = case.metrics.get(MAKESPAN)
    if case.workload != "cpu.fma" or ours is None:
        return case
    kernel = f"peakflops_{case.params['isa']}_fma"
    ours_by_trial = [
        trial.end.metrics[MAKESPAN] or 0.0 for trial in case.trials[:5] if trial.end is not None
    ]
    values = [value / rng.gauss(1.003, 0.003) for value in ours_by_trial]
    trials = tuple(
        bare_trial(i, case.case, tool="likwid-bench", events=(), value=value)
        for i, value in enumerate(values)
    )
    ratios = [a / b for a, b in zip(ours_by_trial, values, strict=True)]
    command = ("likwid-bench", "-t", kernel, "-W", f"N:64kB:{case.params['threads']}", "-s", "1")
    ran = PeerResult(
        tool="likwid-bench",
        title=kernel,
        version="5.2.2",
        measures="FMA operations on registers, mean of the whole run",
        library=None,
        command=command,
        metric=MAKESPAN,
        unit="operation/s",
        statistics=describe(values),
        ratio=describe(ratios),
        verdict=Verdict.CLEAN,
        reasons=(),
        trials=trials,
    )
    why = Reason(
        code="not_installed",
        text="sysbench is not installed; install it with: apt install sysbench",
    )
    missing = ran.model_copy(
        update={
            "tool": "sysbench",
            "title": "cpu",
            "version": None,
            "metric": None,
            "unit": "event/s",
            "statistics": None,
            "ratio": None,
            "verdict": Verdict.SKIPPED,
            "reasons": (why,),
            "trials": (),
        }
    )
    return case.model_copy(update={"peers": (ran, missing)})
