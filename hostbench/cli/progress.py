"""The progress of a job, on standard error: Rich on a terminal, plain lines otherwise.

Nothing here runs on its own: it writes only at events of the run, so a trial is not disturbed by
its own progress bar.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self, TextIO

from hostbench.base.units import duration, human, percent
from hostbench.judge.trial import primary_metric
from hostbench.judge.verdict import not_idle_sentence
from hostbench.model.events import SampleEvent
from hostbench.model.job_events import (
    CaseEndedEvent,
    EstimateEvent,
    GateEvent,
    JobEvent,
    PlanEvent,
    SampleTakenEvent,
    StateEvent,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.model.jobs import StackState
from hostbench.model.result import (
    OWN_TOOL,
    CaseRecord,
    IdleRecord,
    IdleWindow,
    PlannedCase,
    TrialRecord,
    Verdict,
)
from hostbench.model.table import Metric
from hostbench.plan.estimate import Plan
from hostbench.plan.words import estimate_sentence, plan_sentence, waiting_sentence

if TYPE_CHECKING:
    from rich.progress import TaskID

# Long trials print a line at this interval.
SAMPLE_LINE_EVERY_S = 10.0


class PlainProgress:
    """One line for each noteworthy event, of a run here or of a job that is followed. It is silent
    once the reader of its stream has gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._cases: dict[str, PlannedCase] = {}
        self._done = 0
        self._trials = 0
        self._left: dict[str, int] = {}
        self._began_unix_s: float | None = None
        self._has_shown_why_it_waits = False
        self._current: PlannedCase | None = None
        self._metrics: Mapping[str, Sequence[Metric]] = {}
        self._shown_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def say(self, text: str) -> None:
        """Write one line."""
        if self._stream is None:
            return
        try:
            self._stream.write(f"{text}\n")
            self._stream.flush()
        except OSError:  # The reader has gone; the measurement goes on.
            self._stream = None

    def take(self, event: JobEvent) -> None:
        """See Sink.take. Events about cases count only once their plan is known."""
        if isinstance(event, StateEvent):
            self._state(event)
        elif isinstance(event, PlanEvent):
            self.planned(event)
        elif not self._cases:
            return
        elif isinstance(event, EstimateEvent):
            self.say(f"estimate: {estimate_sentence(event.estimate)}")
        elif isinstance(event, WaitingEvent):
            self._has_shown_why_it_waits = True
            self.waits(event.window)
        elif isinstance(event, GateEvent):
            self.gate(event.idle)
        else:
            self._take_of_case(event)

    @property
    def _trials_least(self) -> int:
        """Return the least number of trials, as far as it is known."""
        return self._trials + sum(self._left.values())

    def _take_of_case(
        self, event: TrialBeginsEvent | SampleTakenEvent | TrialEndedEvent | CaseEndedEvent
    ) -> None:
        """Take an event about a case; ignore one about a case that is not in the plan."""
        if isinstance(event, TrialBeginsEvent):
            if event.case in self._cases:
                self.begins(self._cases[event.case], event.index, event.tool)
        elif isinstance(event, SampleTakenEvent):
            if event.case in self._cases:
                self.sample(self._cases[event.case], event.sample)
        elif isinstance(event, TrialEndedEvent):
            if self._enter(event.trial.case, event.trial.index, event.trial.tool):
                if event.trial.tool == OWN_TOOL:
                    self._trials += 1
                    self._left[event.trial.case] = max(0, self._left[event.trial.case] - 1)
                self.trial(event.trial)
        elif self._enter(event.record.case, 0, OWN_TOOL):
            self._done += 1
            self._left[event.record.case] = 0
            self.case_done(event.record)

    def _enter(self, case: str, index: int, tool: str) -> bool:
        """Return whether the plan has the case. Its first trial may have begun before this process
        followed the job, since the beginning of a trial is only published live."""
        found = self._cases.get(case)
        if found is not None and found != self._current:
            self.begins(found, index, tool)
        return found is not None

    def _state(self, event: StateEvent) -> None:
        """Show the state of a job that is followed."""
        if event.state is StackState.WAITING:
            # What the idle gate saw is more informative, and is shown instead.
            if not self._has_shown_why_it_waits:
                why = f": {event.reason}" if event.reason else " until its host is idle"
                self.say(f"job {event.job} waits{why}")
        elif event.state is StackState.QUEUED and event.reason:
            self.say(f"job {event.job} is queued again: {event.reason}")
        elif event.state is StackState.RUNNING:
            self._has_shown_why_it_waits = False
            self._began_unix_s = self._began_unix_s or event.time_unix_s

    def planned(self, event: PlanEvent) -> None:
        """Take over the plan."""
        self._cases = {case.case: case for case in event.cases}
        self._done, self._metrics = len(event.kept), event.metrics
        # Cases are measured in turn, so most of them end last: progress counts trials.
        self._trials = 0
        self._left = {
            case.case: 0 if case.case in event.kept else 1 if case.skip else case.repeats.min_trials
            for case in event.cases
        }
        scale = "" if event.suite.scale is None else f" at scale {event.suite.scale}"
        plan = Plan(suite=event.suite, cases=tuple(event.cases))
        self.say(f"plan{scale}: {plan_sentence(plan, event.kept)}")

    def begins(self, case: PlannedCase, index: int, tool: str) -> None:
        """Note that trial `index` of a case, from 0, is about to start."""
        self._current = case
        self._shown_s = time.monotonic()

    def waits(self, window: IdleWindow) -> None:
        """Show that the gate found the host busy."""
        self.say(waiting_sentence(window))

    def gate(self, idle: IdleRecord) -> None:
        """Show the gate's answer."""
        if idle.idle is False:
            self.say(not_idle_sentence(idle))

    def sample(self, case: PlannedCase, sample: SampleEvent) -> None:
        """Show an interval of a trial; only a few of them get a line."""
        if time.monotonic() - self._shown_s >= SAMPLE_LINE_EVERY_S:
            self._shown_s = time.monotonic()
            self.say(f"{case.title}: {sample.t_s:.0f} s measured")

    def trial(self, trial: TrialRecord) -> None:
        """Show a finished trial."""
        text = self._figure(trial)
        title = self._title(trial.tool)
        self.say(f"[{self._trials}/{self._trials_least}] {title} #{trial.index + 1}: {text}")

    def case_done(self, record: CaseRecord) -> None:
        """Show a finished case."""
        of = f"{self._done}/{len(self._cases)} cases"
        self.say(f"[{of}] {self._title()}: {record.verdict}")

    def _title(self, tool: str = OWN_TOOL) -> str:
        title = self._current.title if self._current else ""
        return title if tool == OWN_TOOL else f"{title}, {tool}"

    def _figure(self, trial: TrialRecord) -> str:
        """Return the figure of a trial, or why there is none."""
        if trial.value is None or self._current is None:
            return f"{trial.verdict}: {'; '.join(reason.text for reason in trial.reasons)}"
        unit = primary_metric(self._metrics[self._current.workload]).unit
        if trial.peer_start is not None:
            unit = trial.peer_start.unit
        text = human(trial.value, unit)
        if trial.efficiency is not None and trial.peer_start is None:
            text += f", {percent(trial.efficiency)} of the limit"
        # The sentences come below the table at the end.
        codes = ", ".join(reason.code for reason in trial.reasons)
        return f"{text}, {trial.verdict} ({codes})" if codes else text


class RichProgress(PlainProgress):
    """A bar over the trials with the running case beside it, and lines only if something is wrong.

    It is drawn at events of the run, never by a thread of its own.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._console = Console(file=stream)
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[elapsed]}"),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._started_s = time.monotonic()
        self._bar: TaskID | None = None

    def __exit__(self, *_exception: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Write one line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def planned(self, event: PlanEvent) -> None:
        """Take over the plan."""
        super().planned(event)
        if self._bar is not None:  # another session of the same job
            self._progress.remove_task(self._bar)
        self._bar = self._progress.add_task(
            "", total=self._trials_least, completed=0, elapsed=duration(0)
        )
        self._progress.start()
        if self._began_unix_s is not None:
            self._started_s = time.monotonic() - max(0.0, time.time() - self._began_unix_s)

    def _show(self, text: str) -> None:
        assert self._bar is not None
        elapsed = duration(time.monotonic() - self._started_s)
        self._progress.update(
            self._bar,
            description=text,
            completed=self._trials,
            total=self._trials_least,
            elapsed=elapsed,
        )
        self._progress.refresh()

    def begins(self, case: PlannedCase, index: int, tool: str) -> None:
        """Show that a trial is about to start."""
        super().begins(case, index, tool)
        self._show(f"{self._title(tool)}, trial {index + 1}")

    def waits(self, window: IdleWindow) -> None:
        """Show that the gate found the host busy."""
        self._show(waiting_sentence(window))

    def sample(self, case: PlannedCase, sample: SampleEvent) -> None:
        """Show an interval of a trial."""
        self._show(f"{case.title}, {sample.t_s:.0f} s")

    def trial(self, trial: TrialRecord) -> None:
        """Show a finished trial only if it has no figure, and not for each peer that is not
        installed: the result lists these once."""
        if trial.value is None and (trial.tool == OWN_TOOL or trial.verdict is Verdict.FAILED):
            super().trial(trial)

    def case_done(self, record: CaseRecord) -> None:
        """Show a finished case."""
        self._show(f"{self._title()}: {record.verdict}")


def progress_for(stream: TextIO) -> PlainProgress:
    """Return Rich progress on a terminal, plain lines otherwise."""
    return RichProgress(stream) if stream.isatty() else PlainProgress(stream)
