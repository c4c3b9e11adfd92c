"""The document of a run of the suite quick, and what it would have been on other hosts.

fixtures/quick.ndjson.gz is the journal of a real run on an AMD EPYC guest with two CPUs (Zen 4)
beside other work, with the metrics and events that verdicts and conditions need. The other hosts
are constructed: what the kernel counted in each trial is replaced, and the trials are judged anew.
"""

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

from hostbench.judge.clock import CLOCK
from hostbench.judge.figure import WHOLE_RUN
from hostbench.judge.trial import measured_trial
from hostbench.model.events import EndEvent, OtherProcesses, OthersEvent, StartEvent
from hostbench.model.peer import AnyTrialEvent
from hostbench.model.registry import subsystems
from hostbench.model.result import (
    OWN_TOOL,
    RECORD,
    CaseRecord,
    Record,
    ResultDocument,
    SessionRecord,
    TrialRecord,
    Verdict,
)
from hostbench.results.document import assemble, replay

JOURNAL = Path(__file__).parent / "fixtures" / "quick.ndjson.gz"
QUOTA_CPUS = 0.6
# Of its figure a quiet trial delivers so much: timer ticks and the harness take the rest.
UNDISTURBED_RATIO = 0.985


def _records() -> list[Record]:
    lines = gzip.decompress(JOURNAL.read_bytes()).splitlines()
    return [RECORD.validate_json(line) for line in lines]


def as_measured() -> ResultDocument:
    """The job as it ran."""
    return assemble(replay(_records()))


def _constructed(
    disturbance: Callable[[float, int], dict[str, float]],
    others: Callable[[OthersEvent], dict[str, object]],
    *,
    delivered: float = 1.0,
    quota_cpus: float | None = None,
    clock_ratio: float | None = None,
) -> ResultDocument:
    """`disturbance`: what the kernel saw of a trial of so many seconds on so many CPUs; `others`:
    what of their event is different; `delivered`: the share of what a quiet host
    delivers; `clock_ratio`: the measured clock over the highest that the kernel states."""
    session, *records = _records()
    assert isinstance(session, SessionRecord)
    host = session.host
    cgroup = host.cgroup.model_copy(update={"quota_cpus": quota_cpus})
    frequency = host.frequency
    if clock_ratio is not None:
        frequency = frequency.model_copy(update={"max_hertz": _clock_hertz(records) / clock_ratio})
    host = host.model_copy(update={"cgroup": cgroup, "frequency": frequency})
    subsystem_of = {case.case: case.subsystem for case in session.cases}
    workload_of = {case.case: case.workload for case in session.cases}

    def made(trial: TrialRecord) -> TrialRecord:
        begun, ended = trial.start, trial.end
        if trial.tool != OWN_TOOL or begun is None or ended is None:
            return trial
        cpus = len(set(begun.placement.cpus))
        seen = ended.disturbance.model_dump(exclude_none=True)
        changes = disturbance(ended.elapsed_s, cpus)
        # Of a workload that waits the kernel tells less, and where threads share a CPU nothing.
        found = {name: value for name, value in changes.items() if name in seen}
        metrics = session.workloads[workload_of[trial.case]]
        (primary,) = (metric for metric in metrics if metric.primary)
        whole = primary.name + WHOLE_RUN[primary.direction]
        figures = dict(ended.metrics)
        if figures.get(whole) is not None and (figure := figures[primary.name]) is not None:
            kept = UNDISTURBED_RATIO * delivered
            figures[whole] = figure * (kept if primary.direction == "higher" else 1 / kept)
        events: list[AnyTrialEvent] = []
        for event in trial.events:
            if isinstance(event, StartEvent):
                placed = event.placement.model_copy(update={"quota_cpus": quota_cpus})
                events.append(event.model_copy(update={"placement": placed}))
            elif isinstance(event, EndEvent):
                now = event.disturbance.model_copy(update=found)
                changed = {"disturbance": now, "metrics": figures, "sentinel": None}
                events.append(event.model_copy(update=changed))
            elif isinstance(event, OthersEvent):
                events.append(event.model_copy(update=others(event)))
            else:
                events.append(event)
        bare = trial.model_copy(
            update={"events": tuple(events), "reasons": (), "verdict": Verdict.CLEAN}
        )
        sensitivity = subsystems()[subsystem_of[trial.case]].sensitivity
        return measured_trial(bare, metrics, trial.limits, sensitivity)

    anew: list[Record] = [
        made(record)
        if isinstance(record, TrialRecord)
        else record.model_copy(update={"figures": None})
        if isinstance(record, CaseRecord)
        else record
        for record in records
    ]
    return assemble(replay([session.model_copy(update={"host": host}), *anew]))


def _clock_hertz(records: Iterable[Record]) -> float:
    """The highest that a limit was made with."""
    return max(
        factor.value
        for record in records
        if isinstance(record, TrialRecord)
        for limit in record.limits.values()
        for factor in limit.factors
        if factor.name == CLOCK
    )


def _left_alone(_elapsed_s: float, _cpus: int) -> dict[str, float]:
    return {
        "cpu_ratio": 0.999,
        "wait_s": 0.0,
        "steal_s": 0.0,
        "throttled_s": 0.0,
        "stopped_s": 0.0,
        "clean_slice_ratio": 0.99,
    }


def _no_others(_others: OthersEvent) -> dict[str, object]:
    none = {"cpu_s": 0.0, "user_s": 0.0, "busiest": (), "busiest_group": None, "clock_held_s": 0.0}
    return {**none, "disk": None}


def quiet() -> ResultDocument:
    """Nothing else ran."""
    return _constructed(_left_alone, _no_others)


def busy() -> ResultDocument:
    """A compiler in a container used half of the CPUs."""

    def others(event: OthersEvent) -> dict[str, object]:
        compiler = OtherProcesses(
            command="cc1plus",
            pid=4711,
            processes=4,
            cpu_s=0.5 * event.cpus * event.elapsed_s,
            group=f"/system.slice/docker-{'3fa9c12b7d01' * 5}3fa9.scope",
        )
        return _no_others(event) | {"cpu_s": compiler.cpu_s, "busiest": (compiler,)}

    def disturbance(elapsed_s: float, cpus: int) -> dict[str, float]:
        taken = {"cpu_ratio": 0.5, "clean_slice_ratio": 0.45, "wait_s": 0.5 * elapsed_s * cpus}
        return _left_alone(elapsed_s, cpus) | taken

    return _constructed(disturbance, others, delivered=0.5)


def under_a_quota() -> ResultDocument:
    """A control group may use 0.6 CPUs."""

    def disturbance(elapsed_s: float, cpus: int) -> dict[str, float]:
        left = min(1.0, QUOTA_CPUS / cpus)
        stopped = {"throttled_s": (1 - left) * elapsed_s * cpus, "cpu_ratio": left}
        return _left_alone(elapsed_s, cpus) | stopped | {"clean_slice_ratio": left}

    return _constructed(disturbance, _no_others, delivered=0.3, quota_cpus=QUOTA_CPUS)


def throttled() -> ResultDocument:
    """Heat held the clock at four fifths for much of the time."""

    def others(event: OthersEvent) -> dict[str, object]:
        return _no_others(event) | {"clock_held_s": 0.4 * event.elapsed_s}

    return _constructed(_left_alone, others, clock_ratio=0.8)
