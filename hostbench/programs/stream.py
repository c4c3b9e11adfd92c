"""Checks the event stream of one trial, for any transport.

A stream that violates the protocol never becomes a figure.
"""

from hostbench.base.errors import shown
from hostbench.base.exitcode import ExitCode
from hostbench.model.events import (
    EVENT,
    EndEvent,
    ErrorEvent,
    Event,
    LastEvent,
    ParamValue,
    SampleEvent,
    SkipEvent,
    StartEvent,
    WarningEvent,
)
from hostbench.model.table import Param, Workload
from hostbench.model.trial import Trial, TrialFailed

# The warning that a fallback requires: what was measured is not what was requested.
FALLBACK_WARNING = "direct_unavailable"

EXIT_OF_LAST_EVENT: dict[type, frozenset[int]] = {
    EndEvent: frozenset({0}),
    SkipEvent: frozenset({4}),
    ErrorEvent: frozenset({1, 2, 3, 5}),
}
# The job's exit code for each exit code of a program.
JOB_EXIT = {2: ExitCode.USAGE, 3: ExitCode.RESOURCE, 5: ExitCode.CORRUPT}


class EventStream:
    """Takes the lines of one trial in order; `finish()` checks that they are complete."""

    def __init__(self, trial: Trial, workload: Workload) -> None:
        """`workload` is the trial's workload in its program's table."""
        self.trial = trial
        self._workload = workload
        self.started = False
        self.last: LastEvent | None = None
        self._fell_back: str | None = None
        self._warned: set[str] = set()

    def take(self, line: bytes) -> Event:
        """Return the event of one line, without its newline. Raise TrialFailed on the first bad
        one."""
        try:
            event = EVENT.validate_json(line)
        except ValueError as error:
            raise self._malformed(f"{_first_line(error)} in {shown(_text(line))}") from None
        self.accept(event)
        return event

    def accept(self, event: Event) -> None:
        """Take an event that is valid by itself. Raise TrialFailed when it does not belong here."""
        self._check_order(event)
        if isinstance(event, WarningEvent):
            self._warned.add(event.code)
        if isinstance(event, StartEvent):
            self._check_start(event)
        if isinstance(event, EndEvent):
            self._check_end(event)

    def _check_order(self, event: Event) -> None:
        if self.last is not None:
            raise self._malformed(f"event {event.event} after the last event {self.last.event}")
        if isinstance(event, StartEvent):
            if self.started:
                raise self._malformed("a second start event")
            self.started = True
        elif isinstance(event, SampleEvent | EndEvent) and not self.started:
            raise self._malformed(f"event {event.event} before the start event")
        if isinstance(event, EndEvent | SkipEvent | ErrorEvent):
            self.last = event

    def _check_start(self, start: StartEvent) -> None:
        """Raise TrialFailed unless the program measures what was requested."""
        program = f"{self.trial.subsystem}-bench"
        if (start.program, start.workload) != (program, self.trial.workload):
            raise self._malformed(
                f"{start.program} {start.workload} answered for {program} {self.trial.workload}"
            )
        for name, requested in self.trial.params.items():
            measured, param = start.params.get(name), self._workload.param(name)
            assert param is not None, "parameters are checked against the table before a trial"
            if requested in param.resolved or isinstance(measured, tuple):
                continue
            difference = f"{name} {shown(measured)} measured, {shown(requested)} requested"
            if measured is not None and measured == param.fallbacks.get(str(requested)):
                self._fell_back = difference
            elif not _same_value(requested, measured) and not _is_named(param, requested, start):
                raise self._malformed(difference)

    def _check_end(self, end: EndEvent) -> None:
        if self._fell_back is not None and FALLBACK_WARNING not in self._warned:
            raise self._malformed(f"{self._fell_back}, without the warning {FALLBACK_WARNING}")
        primary = self._workload.primary.name
        if end.metrics.get(primary) is not None:
            return
        reason = end.reasons.get(f"metrics.{primary}", "no reason given")
        raise TrialFailed("no_figure", f"no {primary}: {reason}")

    def finish(self, exit_code: int, stderr: str) -> None:
        """Check the end of the stream. Raise TrialFailed unless it ended with `end` or `skip`.

        `exit_code` is negative when a signal killed the program; `stderr` has its last lines.
        """
        output = f"; its output: {stderr}" if stderr else ""
        if exit_code < 0:
            raise TrialFailed("killed", f"killed by signal {-exit_code}{output}")
        if self.last is None:
            raise TrialFailed(
                "no_last_event",
                f"exit code {exit_code} without an end, skip or error event{output}",
            )
        if exit_code not in EXIT_OF_LAST_EVENT[type(self.last)]:
            raise TrialFailed(
                "exit_code_contradicts",
                f"exit code {exit_code} contradicts its last event {self.last.event}{output}",
            )
        if isinstance(self.last, ErrorEvent):
            raise TrialFailed(
                self.last.code,
                self.last.message,
                JOB_EXIT.get(exit_code, ExitCode.CASE_FAILED),
                self.last.wrong,
            )

    def _malformed(self, what: str) -> TrialFailed:
        return TrialFailed("malformed_output", f"the program broke the protocol: {what}")


def _is_named(param: Param, requested: ParamValue, start: StartEvent) -> bool:
    """Whether one of the facts of `param`, such as a device's name, is the requested value."""
    names = [start.facts.get(fact, "").lower() for fact in param.facts]
    return isinstance(requested, str) and requested != "" and requested.lower() in names


def _same_value(requested: ParamValue, measured: ParamValue | None) -> bool:
    if isinstance(requested, str) or isinstance(measured, str) or measured is None:
        return requested == measured
    return abs(requested - measured) <= 1e-9 * abs(requested)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _first_line(error: ValueError) -> str:
    """Return where and why, from pydantic's message of several lines."""
    lines = [line.strip() for line in str(error).splitlines()]
    if len(lines) < 2:
        return "not an event"
    where = lines[1] if len(lines) > 2 else ""
    why = lines[-2] if lines[-1].startswith("For further") else lines[-1]
    message = why.partition(" [type=")[0]
    return f"{where}: {message}" if where != why else message
