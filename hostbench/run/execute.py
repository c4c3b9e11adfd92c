"""Run a plan: idle gate, trials of ours and of peers, repeats, sinks."""

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hostbench.base.errors import NotIdleError
from hostbench.base.files import cpu_list
from hostbench.base.interrupt import Interrupt
from hostbench.base.units import duration
from hostbench.host.idle import HostWatch, IdleGate
from hostbench.judge.case import finished_case, first_choices, stop_reason
from hostbench.judge.figure import WHOLE_RUN, Measured, MeasuredCases
from hostbench.judge.peer import judged_peer_trial, peer_pairs
from hostbench.judge.trial import (
    failed_trial,
    measured_trial,
    primary_metric,
    skipped_trial,
    unmeasured_trial,
)
from hostbench.judge.verdict import not_idle_sentence
from hostbench.model.decision import CaseFigure
from hostbench.model.events import EndEvent, SampleEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.job_events import (
    CaseEndedEvent,
    GateEvent,
    JobEvent,
    SampleTakenEvent,
    Sink,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.model.limit import Limit
from hostbench.model.peer import TrialEvent
from hostbench.model.registry import find_subsystem
from hostbench.model.result import (
    OWN_TOOL,
    IdleRecord,
    PlannedCase,
    StopReason,
    TrialRecord,
    Verdict,
)
from hostbench.model.subsystem import Sensitivity
from hostbench.model.table import Metric, ParamMeaning
from hostbench.model.trial import Beside, Transport, Trial, TrialFailed, trial_name
from hostbench.plan.estimate import Plan, trial_timeout_s
from hostbench.plan.workloads import split_workload
from hostbench.programs.peer import Peer
from hostbench.programs.subsystem import peers_of
from hostbench.results.document import Progress, measured_cases

FAR_CPUS = "far_cpus"
# The code of a case that was skipped because the suite's max_time_ratio left no time.
NO_TIME = "no_time"


class HostLimits:
    """The limits of this host for each trial: the trial itself measures some of their factors."""

    def __init__(self, host: HostInventory, subsystems: Iterable[str]) -> None:
        """Raise UsageError for a subsystem that is not installed."""
        self._host = host
        self._subsystems = {name: find_subsystem(name) for name in subsystems}
        # Load them before the first trial, not between two of them.
        for one in self._subsystems.values():
            one.load()

    def of(self, subsystem: str, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        """Return the limits of one trial by metric; empty where the subsystem has none."""
        return self._subsystems[subsystem].limits(self._host, start, end)


class Execution:
    """One run of a plan on one host."""

    def __init__(
        self,
        plan: Plan,
        metrics: Mapping[str, tuple[Metric, ...]],
        params: Mapping[str, tuple[ParamMeaning, ...]],
        transport: Transport,
        watch: HostWatch,
        limits: HostLimits,
        sinks: Sequence[Sink],
        interrupt: Interrupt,
        sensitivities: Mapping[str, Sensitivity] = MappingProxyType({}),
        earlier: Mapping[str, Sequence[CaseFigure]] = MappingProxyType({}),
    ) -> None:
        """`metrics`, `params` and `sensitivities` by full workload name; `earlier`: the figures in
        earlier jobs of the host, by case."""
        self._plan = plan
        self._metrics = metrics
        self._params = params
        self._transport = transport
        self._limits = limits
        self._sensitivities = sensitivities
        self._earlier = earlier
        self._sinks = sinks
        self._interrupt = interrupt
        ratio, estimate = plan.suite.max_time_ratio, plan.estimate()
        self._most_s = self._until_s = math.inf
        if ratio is not None and estimate.complete:
            self._most_s = ratio * estimate.high_s
        rules = plan.suite.idle
        self._gate = IdleGate(
            rules,
            interrupt,
            watch,
            on_wait=lambda window: self._publish(WaitingEvent(window=window)),
        )

    def run(self, before: Progress) -> None:
        """Measure every case that is not done in `before`. The trials that it has of other cases
        count.

        Raise Interrupted, NotIdleError (policy `fail`), or what a sink raises.
        """
        idle: IdleRecord | None = None
        everyone = measured_cases(before)
        self._until_s = time.monotonic() + self._most_s
        for group in self._gated_groups():
            cases = [case for case in group if case.case not in before.done]
            gated = tuple(case.case for case in cases if case.skip is None)
            if gated:
                idle = self.pass_gate(gated)
            in_turn = [self._in_turn(everyone[case.case], before) for case in cases]
            self._run_rounds(in_turn, everyone, idle)

    def _gated_groups(self) -> list[list[PlannedCase]]:
        """Return the groups of cases that share one answer of the idle gate."""
        per = self._plan.suite.idle.per
        if per == "suite":
            return [list(self._plan.cases)]
        return self._plan.blocks if per == "block" else [[case] for case in self._plan.cases]

    def _publish(self, event: JobEvent) -> None:
        for sink in self._sinks:
            sink.take(event)

    def pass_gate(self, cases: tuple[str, ...]) -> IdleRecord:
        """Return the idle gate's record for `cases`. Raise NotIdleError (policy `fail`)."""
        idle = self._gate.ask(cases)
        self._publish(GateEvent(idle=idle))
        if idle.idle is False and idle.policy == "fail":
            raise NotIdleError(
                f"{not_idle_sentence(idle)}; stop the other programs, wait longer (timeout_s), "
                "or measure anyway: --idle-policy flag, or policy: flag in the suite"
            )
        return idle

    def _in_turn(self, measured: Measured, before: Progress) -> "CaseInTurn":
        measured.earlier = self._earlier.get(measured.case.case, ())
        peers = before.peer_trials.get(measured.case.case, [])[:]
        given_up = {trial.tool for trial in peers if trial.value is None}
        return CaseInTurn(measured, peers, given_up)

    def _run_rounds(
        self, group: Sequence["CaseInTurn"], everyone: MeasuredCases, idle: IdleRecord | None
    ) -> None:
        """Run one trial of each case in turn, until each case has enough.

        The trials of a case are then spread as far over time as its figure may drift, at no extra
        time. `everyone`: all cases of the job.
        """
        left = [one for one in group if not self._is_done(one, everyone, idle)]
        while left:
            for one in left:
                if self._has_time(one.measured.case):
                    self._run_turn(one, everyone)
                    one.is_done = self._is_done(one, everyone, idle)
                else:
                    self._end_early(one, everyone, idle)
                    one.is_done = True
            left = [one for one in left if not one.is_done]

    def _has_time(self, case: PlannedCase) -> bool:
        """Whether a further trial of a case would end in time.

        A case without planned time, such as one that needs a missing GPU, always gets its turn: it
        reports its own reason at once.
        """
        trial_s = self._plan.trial_time_s(case) or 0.0
        return trial_s == 0 or time.monotonic() + trial_s <= self._until_s

    def _end_early(
        self, one: "CaseInTurn", everyone: MeasuredCases, idle: IdleRecord | None
    ) -> None:
        """Publish the record of a case for which no time is left. A case without a trial is
        skipped."""
        case, stopped = one.measured.case, StopReason.MAX_TIME
        if not one.measured.trials:
            stopped = StopReason.SKIPPED
            why = (
                f"the {duration(self._most_s)} that the suite allows are used up "
                "(max_time_ratio): stop other programs on this host, or measure this workload "
                f"alone (hostbench run --workload {case.workload})"
            )
            trial = unmeasured_trial(case, why, NO_TIME)
            everyone.add_trial(one.measured, trial)
            self._publish(TrialEndedEvent(trial=trial))
        others = everyone.others_of(one.measured)
        record = finished_case(one.measured, one.peers, idle, stopped, others)
        self._publish(CaseEndedEvent(record=record))

    def _run_turn(self, one: "CaseInTurn", everyone: MeasuredCases) -> None:
        """Run a trial of a case, and one trial of each of its peers."""
        case = one.measured.case
        trial = self.run_trial(case, one.measured.trials)
        everyone.add_trial(one.measured, trial)
        if trial.end is not None:
            # While the machine was suspended, nothing could be measured, so that time does not
            # count.
            self._until_s += trial.end.disturbance.stopped_s or 0.0
        one.peers.extend(self._run_peers(case, trial, one.given_up))

    def _is_done(self, one: "CaseInTurn", everyone: MeasuredCases, idle: IdleRecord | None) -> bool:
        """Return whether a case needs no further trial; if so, publish its record."""
        others = everyone.others_of(one.measured)
        stopped = stop_reason(one.measured, others)
        if stopped is None:
            return False
        record = finished_case(one.measured, one.peers, idle, stopped, others)
        self._publish(CaseEndedEvent(record=record))
        return True

    def run_trial(self, case: PlannedCase, before: Sequence[TrialRecord]) -> TrialRecord:
        """Run the next trial of a case, after its trials in `before`. Raise Interrupted."""
        self._interrupt.check()
        self._publish(TrialBeginsEvent(case=case.case, index=len(before), tool=OWN_TOOL))
        record = self._run_trial(case, before)
        self._publish(TrialEndedEvent(trial=record))
        return record

    def _run_trial(self, case: PlannedCase, before: Sequence[TrialRecord]) -> TrialRecord:
        if case.skip is not None:
            return unmeasured_trial(case, case.skip)
        record, failure = self._measured(case, len(before), self._trial(case, before))
        if failure is not None:
            return failed_trial(record, failure)
        return self._judged(case, record)

    def _run_peers(
        self, case: PlannedCase, ours: TrialRecord, given_up: set[str]
    ) -> Iterator[TrialRecord]:
        """Run one trial of each peer right after ours.

        `given_up` collects the peers without a figure: they would have none the next time, either.
        """
        if ours.value is None or ours.index >= peer_pairs(case):
            return
        for turn in peer_turns(case, ours, primary_metric(self._metrics[case.workload])):
            if turn.peer.tool in given_up:
                continue
            self._interrupt.check()
            self._publish(TrialBeginsEvent(case=case.case, index=ours.index, tool=turn.peer.tool))
            record, failure = self._measured(case, ours.index, turn.trial)
            record = failed_trial(record, failure) if failure else turn.judged(record)
            self._publish(TrialEndedEvent(trial=record))
            yield record
            if record.value is None:
                given_up.add(turn.peer.tool)

    def _measured(
        self, case: PlannedCase, index: int, trial: Trial
    ) -> tuple[TrialRecord, TrialFailed | None]:
        """Run a trial and return its record, not yet judged, and the failure that ended it, or None
        if it did not fail."""
        time_unix_s, started_s = time.time(), time.monotonic()
        events: list[TrialEvent] = []
        failure: TrialFailed | None = None
        # Closed in any case, so that no part of a trial runs on after an exception.
        with contextlib.closing(self._transport.run(trial)) as stream:
            try:
                for event in stream:
                    events.append(event)
                    if isinstance(event, SampleEvent):
                        self._publish(
                            SampleTakenEvent(
                                case=case.case, sample=event, index=index, time_unix_s=time_unix_s
                            )
                        )
            except TrialFailed as error:
                failure = error
        record = TrialRecord(
            case=case.case,
            index=index,
            tool=trial.tool,
            time_unix_s=time_unix_s,
            wall_s=time.monotonic() - started_s,
            verdict=Verdict.CLEAN,
            events=tuple(events),
        )
        return record, failure

    def _judged(self, case: PlannedCase, record: TrialRecord) -> TrialRecord:
        if record.start is None or record.end is None:
            return skipped_trial(record)
        limits = self._limits.of(case.subsystem, record.start, record.end)
        sensitivity = self._sensitivities.get(case.workload, Sensitivity.HOST)
        return measured_trial(record, self._metrics[case.workload], limits, sensitivity)

    def _trial(self, case: PlannedCase, before: Sequence[TrialRecord]) -> Trial:
        chosen = first_choices(case.params, self._params[case.workload], before)
        return Trial(
            tool=OWN_TOOL,
            subsystem=case.subsystem,
            workload=case.workload.partition(".")[2],
            params={**case.call, **chosen},
            timeout_s=case.timeout_s,
            id=trial_name(case, len(before)),
        )


@dataclass(slots=True)
class CaseInTurn:
    """A case among those that are measured in turn: the trials of its peers so far, the tools
    without a figure, and whether it needs no further trial."""

    measured: Measured
    peers: list[TrialRecord]
    given_up: set[str]
    is_done: bool = False


@dataclass(frozen=True)
class PeerTurn:
    """One trial of one peer beside one of ours."""

    peer: Peer
    trial: Trial
    beside: Beside
    limit: Limit | None

    def judged(self, record: TrialRecord) -> TrialRecord:
        """Return the trial's record with its verdict."""
        return judged_peer_trial(record, self.peer, self.beside, self.limit)


def peer_turns(case: PlannedCase, ours: TrialRecord, primary: Metric) -> Iterator[PeerTurn]:
    """Yield the peers of `case` to run after `ours`, with the parameters that `ours` resolved.
    `ours` must have a figure."""
    assert ours.start is not None and ours.end is not None and ours.value is not None
    subsystem, workload = split_workload(case.workload)
    params = {
        name: value
        for name, value in ours.start.params.items()
        if value is not None and not isinstance(value, tuple)
    }
    beside = Beside(
        cpus=ours.start.placement.cpus,
        rate=ours.end.metrics.get(primary.name + WHOLE_RUN[primary.direction]) or ours.value,
        elapsed_s=ours.end.elapsed_s,
        far_cpus=_far_cpus(ours.start),
        libraries=tuple(f"{one.name} {one.version}" for one in ours.start.libraries),
    )
    for peer in peers_of(subsystem, workload, params):
        if peer.tool not in case.peers:
            continue
        trial = Trial(
            tool=peer.tool,
            subsystem=subsystem,
            workload=workload,
            params=params,
            timeout_s=trial_timeout_s(peer.trial_time_s(beside.elapsed_s)),
            beside=beside,
            id=trial_name(case, ours.index, peer.tool),
        )
        yield PeerTurn(peer, trial, beside, _limit(ours, peer, primary))


def _far_cpus(start: StartEvent) -> tuple[int, ...]:
    """Return the CPUs of the far end: between two hosts, as the far end reports them; else where
    the near end placed it."""
    param = start.params.get(FAR_CPUS)
    return cpu_list(start.facts.get(FAR_CPUS)) or (param if isinstance(param, tuple) else ())


def _limit(ours: TrialRecord, peer: Peer, primary: Metric) -> Limit | None:
    """Return the limit of a peer's figure, or None.

    What limits our primary metric also limits a whole-run mean of the same quantity. A peer's time
    has no limit.
    """
    if peer.metric is None or primary.direction == "lower":
        return None
    limit = ours.limits.get(peer.metric) or ours.limits.get(primary.name)
    return limit if limit is not None and limit.unit == peer.unit else None
