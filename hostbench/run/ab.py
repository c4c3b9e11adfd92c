"""The test of a setting on this host: blocks of A B B A until the result is clear."""

import contextlib
import itertools
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import hostbench
from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.base.units import plural
from hostbench.decisions.ab import BLOCKS_LEAST, Block, BlockFigure, SettingJudge
from hostbench.decisions.compare import summed_up, usual_margin
from hostbench.host.idle import LocalWatch
from hostbench.host.lock import host_lock
from hostbench.host.scratch import Scratch
from hostbench.judge.figure import WHOLE_RUN, delivered_value, has_clean_slices
from hostbench.judge.trial import primary_metric
from hostbench.model.decision import (
    FigureKind,
    SettingSide,
    SettingTest,
    SettingTrial,
    Word,
)
from hostbench.model.events import ParamValue
from hostbench.model.job_events import GateEvent, JobEvent
from hostbench.model.result import WITH_FIGURE, PlannedCase, TrialRecord, Verdict
from hostbench.model.suite import IdlePolicy, Repeats, Suite, SuiteCase
from hostbench.plan.suite import AD_HOC_IDLE
from hostbench.plan.workloads import AD_HOC, first_between_hosts
from hostbench.programs.setting_commands import SettingCommands
from hostbench.run.execute import Execution, HostLimits
from hostbench.run.job import Audience, set_up
from hostbench.run.local import LocalTransport
from hostbench.run.session import Setup

ORDERS = ("abba", "baab")
TRIALS_A_BLOCK = 4
# If a trial of a block was disturbed, the block is measured again at once: a block at most
# ATTEMPTS_MOST times, and at most REPEATED_MOST repetitions in a run. Otherwise the run would never
# end on a busy host.
ATTEMPTS_MOST = 3
REPEATED_MOST = 12
# For the estimate of the time: the blocks end the test, not a time limit.
UNBOUNDED_S = 30 * 86400.0

SideName = Literal["a", "b"]


@dataclass(frozen=True)
class Setting:
    """What one side sets: parameters of the workload, environment variables of its trials, and a
    command that runs before each of them."""

    params: Mapping[str, ParamValue] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str | None = None


@dataclass(frozen=True)
class SettingRequest:
    """What to test.

    `params` belong to both sides. `restore` and `command_timeout_s` belong to the sides' commands.
    `margin`: see Change; None: what the subsystem's figures reach.
    """

    workload: str
    params: Mapping[str, ParamValue]
    a: Setting
    b: Setting
    blocks_most: int
    restore: str | None = None
    command_timeout_s: float = 0.0
    margin: float | None = None
    idle_policy: IdlePolicy | None = None
    wait_s: float = 0.0

    @property
    def sides(self) -> dict[SideName, Setting]:
        """Both sides by name."""
        return {"a": self.a, "b": self.b}


def run_setting_test(
    request: SettingRequest, interrupt: Interrupt, audience: Audience
) -> SettingTest:
    """Measure both settings in turn until it is clear whether they differ.

    Whatever happens, the restore command runs before this function returns or raises. Raise
    HostbenchError, also where a trial has no figure because it failed or cannot run here.
    """
    setup, programs = set_up(_suite(request))
    if (between := first_between_hosts(setup.plan.cases)) is not None:
        raise UsageError(
            f"{between.title} has its far end on a second host, but this command tests a "
            "setting on one host; set the parameter target=loopback"
        )
    first, *other = setup.plan.cases
    cases: dict[SideName, PlannedCase] = {"a": first, "b": other[0] if other else first}
    audience.take(setup.plan_event())
    scratch = Scratch()
    with (
        host_lock(request.wait_s, interrupt) as lock,
        contextlib.closing(scratch),
        _commands(request, interrupt, lock.descriptor) as commands,
    ):
        lock.name_holder("ab")
        gate = _Gate()
        execution = Execution(
            plan=setup.plan,
            metrics=setup.metrics,
            params=setup.session("ab").params,
            transport=LocalTransport(programs, interrupt, lock.descriptor, scratch),
            watch=LocalWatch(),
            limits=HostLimits(setup.host, setup.tables),
            sinks=(audience, gate),
            interrupt=interrupt,
            sensitivities=setup.sensitivities,
        )
        test = _Test(request, setup, cases, execution, commands, audience)
        try:
            execution.pass_gate(tuple(case.case for case in setup.plan.cases))
            test.run()
        except HostbenchError as error:
            count = plural(test.judge.count, "block")
            error.add(f"{count} measured until then; nothing of that is kept")
            _restored(commands, error)
            raise
        return test.result(gate.idle, _not_restored(commands))


class _Gate:
    """Remembers the idle gate's answer."""

    idle: bool | None = None

    def take(self, event: JobEvent) -> None:
        if isinstance(event, GateEvent):
            self.idle = event.idle.idle


def _suite(request: SettingRequest) -> Suite:
    """Return the suite of both sides: one case if they have the same parameters, else two."""
    params = [{**request.params, **side.params} for side in request.sides.values()]
    trials = TRIALS_A_BLOCK // len({tuple(sorted(one.items())) for one in params})
    idle = AD_HOC_IDLE
    if request.idle_policy is not None:
        idle = idle.model_copy(update={"policy": request.idle_policy})
    return Suite(
        name=AD_HOC,
        idle=idle,
        repeats=Repeats(
            min_trials=trials * BLOCKS_LEAST,
            max_trials=trials * request.blocks_most,
            max_time_s=UNBOUNDED_S,
        ),
        cases=tuple(SuiteCase(workload=request.workload, params=one) for one in params),
    )


def _commands(
    request: SettingRequest, interrupt: Interrupt, lock: int
) -> contextlib.AbstractContextManager[SettingCommands | None]:
    """Return the runner of the sides' commands, or a context of None if there are none. The host
    stays locked until the setting is restored."""
    commands = {name: side.command for name, side in request.sides.items() if side.command}
    if not commands:
        return contextlib.nullcontext()
    assert request.restore is not None, "commands have one that restores"
    return SettingCommands(
        {str(name): command for name, command in commands.items()},
        request.restore,
        request.command_timeout_s,
        interrupt,
        (lock,),
    )


def _not_restored(commands: SettingCommands | None) -> str | None:
    return None if commands is None else commands.restore()


def _restored(commands: SettingCommands | None, error: HostbenchError) -> None:
    """Restore the setting after an error; add to the error what went wrong with that."""
    problem = _not_restored(commands)
    if problem is not None:
        error.add(problem)
        error.exit_code = ExitCode.NOT_RESTORED


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these variables in the environment that programs inherit, and reset them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Test:
    """One test while it runs."""

    def __init__(
        self,
        request: SettingRequest,
        setup: Setup,
        cases: Mapping[SideName, PlannedCase],
        execution: Execution,
        commands: SettingCommands | None,
        audience: Audience,
    ) -> None:
        self._request = request
        self._setup = setup
        self._cases = cases
        self._execution = execution
        self._commands = commands
        self._audience = audience
        workload = cases["a"].workload
        metrics = setup.metrics[workload]
        self._primary = primary_metric(metrics)
        whole_run = self._primary.name + WHOLE_RUN[self._primary.direction]
        self._has_slices = whole_run in {metric.name for metric in metrics}
        self._kinds = tuple(FigureKind) if self._has_slices else (FigureKind.DELIVERED,)
        margin = request.margin or usual_margin(cases["a"].subsystem)
        self.judge = SettingJudge(self._primary.direction, margin, request.blocks_most)
        self._records: dict[str, list[TrialRecord]] = {case.case: [] for case in cases.values()}
        self._trials: list[SettingTrial] = []
        self._repeated = 0
        self._began_unix_s = time.time()

    def run(self) -> None:
        """Measure block after block until the result is clear or the most blocks are reached."""
        is_over = False
        while not is_over:
            block = self._block()
            is_over = self.judge.take(block)
            self._say(block)

    def _block(self) -> Block:
        """Measure one block; measure it again where trials were disturbed."""
        number = self.judge.count
        attempts: list[list[SettingTrial]] = []
        while True:
            attempts.append(self._attempt(number, len(attempts)))
            if all(getattr(trial, kind) for trial in attempts[-1] for kind in self._kinds):
                break
            if len(attempts) == ATTEMPTS_MOST or self._repeated == REPEATED_MOST:
                break
            self._repeated += 1
        found = {kind: block_figure(attempts, kind) for kind in self._kinds}
        return {kind: figure for kind, figure in found.items() if figure is not None}

    def _attempt(self, block: int, attempt: int) -> list[SettingTrial]:
        order = secrets.choice(ORDERS)
        sides: list[SideName] = ["a" if letter == "a" else "b" for letter in order]
        found = [self._trial(side, block, attempt) for side in sides]
        self._trials += found
        return found

    def _trial(self, side: SideName, block: int, attempt: int) -> SettingTrial:
        setting, case = self._request.sides[side], self._cases[side]
        if setting.command is not None:
            assert self._commands is not None
            self._commands.set(side)
        records = self._records[case.case]
        with _environment(setting.environment):
            record = self._execution.run_trial(case, records)
        records.append(record)
        if record.verdict not in WITH_FIGURE:
            raise _no_trial(side, case, record)
        is_clean = record.verdict is Verdict.CLEAN
        delivered = delivered_value(record, self._primary)
        # Without slices it is unknown what others took from a disturbed trial.
        if not (is_clean or (record.verdict is Verdict.DISTURBED and self._has_slices)):
            delivered = None
        undisturbed = record.value if is_clean and has_clean_slices(record) else None
        return SettingTrial(
            side=side,
            block=block,
            attempt=attempt,
            time_unix_s=record.time_unix_s,
            verdict=record.verdict,
            reasons=tuple(reason.code for reason in record.reasons),
            undisturbed=_positive(undisturbed),
            delivered=_positive(delivered),
        )

    def _say(self, block: Block) -> None:
        parts = [f"{kind} B/A {math.exp(figure.difference):.4f}" for kind, figure in block.items()]
        text = ", ".join(parts) or "no figure that counts"
        self._audience.say(f"block {self.judge.count}: {text}")

    def result(self, idle: bool | None, not_restored: str | None) -> SettingTest:
        """Return the result of the blocks so far."""
        figures = self.judge.figures()
        word = summed_up(one.word for one in figures.values()) if figures else Word.UNDECIDED
        sides = {
            name: SettingSide(
                title=self._cases[name].title,
                params=dict(self._cases[name].params),
                environment=dict(side.environment),
                command=side.command,
            )
            for name, side in self._request.sides.items()
        }
        return SettingTest(
            word=word,
            hostbench=hostbench.__version__,
            host=self._setup.host.hostname,
            created_unix_s=self._began_unix_s,
            workload=self._cases["a"].workload,
            unit=self._primary.unit,
            direction=self._primary.direction,
            a=sides["a"],
            b=sides["b"],
            looks=self.judge.looks,
            blocks=self.judge.count,
            repeated=self._repeated,
            idle=idle,
            figures=figures,
            no_figure={kind: self._why_none(kind) for kind in self._kinds if kind not in figures},
            trials=tuple(self._trials),
            not_restored=not_restored,
        )

    def _why_none(self, kind: FigureKind) -> str:
        """Return why no block has a figure of this kind."""
        lacking = [trial for trial in self._trials if getattr(trial, kind) is None]
        counts = Counter(trial.side for trial in lacking)
        of = " and ".join(
            f"{counts[side]} of {sum(trial.side == side for trial in self._trials)} trials of "
            f"{side.upper()}"
            for side in sorted(counts)
        )
        codes = Counter(itertools.chain.from_iterable(trial.reasons for trial in lacking))
        why = f" ({', '.join(code for code, _ in codes.most_common(3))})" if codes else ""
        return f"{of} have no {kind} figure{why}"


def block_figure(
    attempts: Sequence[Sequence[SettingTrial]], kind: FigureKind
) -> BlockFigure | None:
    """Return one figure of a block, from the attempts in which all trials have it; None if there is
    no such attempt."""
    logs: dict[SideName, list[float]] = {"a": [], "b": []}
    for attempt in attempts:
        values = [(trial.side, getattr(trial, kind)) for trial in attempt]
        if all(value for _, value in values):
            for side, value in values:
                logs[side].append(math.log(value))
    return BlockFigure(tuple(logs["a"]), tuple(logs["b"])) if logs["a"] else None


def _no_trial(side: SideName, case: PlannedCase, record: TrialRecord) -> HostbenchError:
    why = "; ".join(reason.text for reason in record.reasons)
    if record.verdict is Verdict.SKIPPED:
        error = HostbenchError(f"side {side.upper()}, {case.title}, cannot run here: {why}")
        error.exit_code = ExitCode.NOTHING_RAN
        return error
    error = HostbenchError(f"side {side.upper()}, {case.title}, failed: {why}")
    if record.failure is not None:
        error.exit_code = ExitCode(record.failure.exit_code)
    return error


def _positive(value: float | None) -> float | None:
    """Return the value, or None if it is not above 0: ratios of such values mean nothing."""
    return value if value is not None and value > 0 else None
