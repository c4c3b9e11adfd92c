"""Runs a plan: idle gate, trials, repeats, sinks."""

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence

from hostbench.choices import settled
from hostbench.errors import NotIdleError
from hostbench.idle import HostWatch, IdleGate
from hostbench.interrupt import Interrupt
from hostbench.judge import (
    failed_trial,
    measured_trial,
    primary_metric,
    skipped_trial,
    unmeasured_trial,
)
from hostbench.limits import HostLimits
from hostbench.models.events import SampleEvent, StartEvent
from hostbench.models.peer import TrialEvent
from hostbench.models.result import (
    OWN_TOOL,
    CaseRecord,
    IdleRecord,
    PlannedCase,
    TrialRecord,
    Verdict,
)
from hostbench.models.table import Metric
from hostbench.notices import GateWaits, Notice, SampleTaken, Sink, TrialBegins
from hostbench.peerturns import peer_turns
from hostbench.plan import Plan
from hostbench.repeats import counted_trials, peer_pairs, stop_reason
from hostbench.statistics import describe
from hostbench.trial import Transport, Trial, TrialFailed, trial_name
from hostbench.verdict import case_verdict, not_idle_sentence


class Execution:
    """One run of a plan on one host."""

    def __init__(
        self,
        plan: Plan,
        metrics: Mapping[str, tuple[Metric, ...]],
        transport: Transport,
        watch: HostWatch,
        limits: HostLimits,
        sinks: Sequence[Sink],
        interrupt: Interrupt,
    ) -> None:
        """`metrics` by full workload name."""
        self._plan = plan
        self._metrics = metrics
        self._transport = transport
        self._limits = limits
        self._sinks = sinks
        self._interrupt = interrupt
        rules = plan.suite.idle
        self._gate = IdleGate(
            rules, interrupt, watch, on_wait=lambda window: self._tell(GateWaits(window))
        )

    def run(self, kept: Collection[str] = ()) -> None:
        """Measures every case that is not in `kept`.

        Raises Interrupted, NotIdleError (policy `fail`), or what a sink raises.
        """
        idle: IdleRecord | None = None
        for group in self._gated_groups():
            cases = [case for case in group if case.case not in kept]
            measured = tuple(case.case for case in cases if case.skip is None)
            if measured:
                idle = self._pass_gate(measured)
            for case in cases:
                self._run_case(case, idle)

    def _gated_groups(self) -> list[list[PlannedCase]]:
        """The cases that one question to the idle gate speaks for."""
        per = self._plan.suite.idle.per
        if per == "suite":
            return [list(self._plan.cases)]
        return self._plan.blocks if per == "block" else [[case] for case in self._plan.cases]

    def _tell(self, notice: Notice) -> None:
        for sink in self._sinks:
            sink.take(notice)

    def _pass_gate(self, cases: tuple[str, ...]) -> IdleRecord:
        idle = self._gate.ask(cases)
        self._tell(idle)
        if idle.idle is False and idle.policy == "fail":
            raise NotIdleError(
                f"{not_idle_sentence(idle)}; end what is running, wait longer (timeout_s), "
                "or measure all the same with --idle-policy flag"
            )
        return idle

    def _run_case(self, case: PlannedCase, idle: IdleRecord | None) -> None:
        trials: list[TrialRecord] = []
        given_up: set[str] = set()
        while (stopped := stop_reason(case, trials)) is None:
            self._interrupt.check()
            self._tell(TrialBegins(case, len(trials)))
            trials.append(self._run_trial(case, trials))
            self._tell(trials[-1])
            self._run_peers(case, trials[-1], given_up)
        counted = counted_trials(case, trials)
        values = [trial.value for trial in counted if trial.value is not None]
        verdict, _ = case_verdict(case, trials, counted, describe(values) if values else None, idle)
        self._tell(CaseRecord(case=case.case, stopped=stopped, verdict=verdict))

    def _run_trial(self, case: PlannedCase, before: Sequence[TrialRecord]) -> TrialRecord:
        if case.skip is not None:
            return unmeasured_trial(case, case.skip)
        record, failure = self._measured(case, len(before), self._trial(case, before))
        if failure is not None:
            return failed_trial(record, failure)
        return self._judged(case, record)

    def _run_peers(self, case: PlannedCase, ours: TrialRecord, given_up: set[str]) -> None:
        """One trial of each peer, right after ours. `given_up` gathers those that had no figure:
        they would have none the next time either."""
        if ours.value is None or ours.index >= peer_pairs(case):
            return
        for turn in peer_turns(case, ours, primary_metric(self._metrics[case.workload])):
            if turn.peer.tool in given_up:
                continue
            self._interrupt.check()
            self._tell(TrialBegins(case, ours.index, turn.peer.tool))
            record, failure = self._measured(case, ours.index, turn.trial)
            record = failed_trial(record, failure) if failure else turn.judged(record)
            self._tell(record)
            if record.value is None:
                given_up.add(turn.peer.tool)

    def _measured(
        self, case: PlannedCase, index: int, trial: Trial
    ) -> tuple[TrialRecord, TrialFailed | None]:
        """A trial that nobody has judged yet, and why its transport has no end of it."""
        time_unix_s, started_s = time.time(), time.monotonic()
        events: list[TrialEvent] = []
        start: StartEvent | None = None
        failure: TrialFailed | None = None
        # Closed in any case: nothing of a trial runs on when this is left by an exception.
        with contextlib.closing(self._transport.run(trial)) as stream:
            try:
                for event in stream:
                    events.append(event)
                    if isinstance(event, StartEvent):
                        start = event
                    elif isinstance(event, SampleEvent):
                        self._tell(SampleTaken(case, event, index, time_unix_s, start))
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
        return measured_trial(record, self._metrics[case.workload], limits)

    def _trial(self, case: PlannedCase, before: Sequence[TrialRecord]) -> Trial:
        return Trial(
            tool=OWN_TOOL,
            subsystem=case.subsystem,
            workload=case.workload.partition(".")[2],
            params={**case.call, **settled(case.params, before)},
            primary=primary_metric(self._metrics[case.workload]).name,
            timeout_s=case.timeout_s,
            name=trial_name(case, len(before)),
        )
