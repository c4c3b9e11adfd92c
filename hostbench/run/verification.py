"""Proof that this host computes right: every kernel in turn, on all CPUs at once and on each alone,
with operands that change from round to round.

The programs compare every result themselves. Ideas: the alternation of one CPU with all, out of
idleness, and retests with the seed of an error are those of OpenDCDiag; values from another CPU
those of google/cpu-check; the patterns in most of the memory those of stressapptest.
"""

import itertools
import os
import secrets
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.hardware_errors import error_counts, hottest_celsius
from hostbench.host.inventory import inventory
from hostbench.host.lock import host_lock
from hostbench.model.events import EndEvent, ParamValue, SkipEvent, StartEvent, WrongValue
from hostbench.model.host import Gpu, HostInventory
from hostbench.model.registry import find_subsystem
from hostbench.model.result import PlannedCase
from hostbench.model.suite import GridAxis, Suite, SuiteCase
from hostbench.model.table import Table
from hostbench.model.trial import Trial, TrialFailed
from hostbench.model.verification import Exposure, Finding, Retest, Verification
from hostbench.plan.grid import DEVICE, make_plan
from hostbench.plan.workloads import AD_HOC, find_workload, split_workload
from hostbench.programs.program import Program, load_programs
from hostbench.results.ids import new_job_id
from hostbench.run.local import LocalTransport, command_line

# What computes, or holds what is computed.
SUBSYSTEMS = ("cpu", "mem", "gpu")
PATTERNS = "mem.patterns"
# Of these, what the last pass leaves in the arrays is compared, once.
LAST_PASS = frozenset(
    f"mem.{name}"
    for name in ("write", "copy", "scale", "add", "triad", "read_write", "memset_write")
)
# They time something else than a computation: the clock, the kernel, the way between
# cores and between nodes.
UNCHECKED = frozenset(
    f"cpu.{name}"
    for name in (
        "clock",
        "clock_ladder",
        "context_switch",
        "core_to_core",
        "fixed_work",
        "page_fault",
        "process_start",
        "smt_yield",
        "syscall",
        "wakeup",
    )
) | {"mem.numa"}
# Parameters that choose another kernel.
KERNEL_PARAMS = ("dtype", "isa", "mix", "operation")
# Of matrices, so that one step takes milliseconds.
TEAM_ROWS = 1024
SEED, SEED_MOST = "seed", 10**15
TRIAL_S = {"cpu": 0.3, "mem": 1.0, "gpu": 0.5}
# So that a pass over most of the memory, and its complement, end.
PATTERNS_S = 6.0
WARMUP_S = 0.05
LEAST_S = 0.1
# Long enough for a core to leave its deepest sleep state and its clock to fall.
IDLE_S = 0.1
TIMEOUT_S = 3600.0
RETESTS = {"cpu": 5, "mem": 2, "gpu": 3}
# Memory may have been short for a moment; a kernel that fails so often is left out.
FAILURES_MOST = 3
# More say nothing new.
FINDINGS_MOST = 16
KEEP_EVERY_S = 10.0


class Keeper(Protocol):
    """Shows and stores a verification while it runs."""

    def say(self, text: str) -> None:
        """Show one line to people."""
        ...

    def keep(self, verification: Verification) -> None:
        """Store what was checked so far. Raise ResourceError."""
        ...


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify.

    `duration_s`: no trial begins later. `subsystems`: empty: all. `memory_share`: of the free
    memory, for patterns. `seed`: that of the first round; None: a random one. `earlier` reads what
    to add to, once no other run holds the host.
    """

    duration_s: float
    subsystems: tuple[str, ...] = ()
    memory_share: float = 0.8
    seed: int | None = None
    wait_s: float = 0.0
    earlier: Callable[[], Verification] | None = None


@dataclass(frozen=True)
class _Turn:
    """One trial of a round: a case on these CPUs, the first thread on the first of them. Without
    CPUs, the case runs as planned."""

    case: PlannedCase
    cpus: tuple[int, ...]

    @property
    def subsystem(self) -> str:
        return split_workload(self.case.workload)[0]


def run_verification(
    request: VerifyRequest, interrupt: Interrupt, keeper: Keeper
) -> tuple[Verification, Interrupted | None]:
    """Verify until the time is over, or until a signal, which is returned. Raise HostbenchError."""
    names = request.subsystems or SUBSYSTEMS
    programs = load_programs(names)
    host = inventory(gpu=any(find_subsystem(name).has_devices for name in names))
    tables = {name: program.table for name, program in programs.items() if _is_here(name, host)}
    suite, not_run = suite_of_kernels(tables, request.memory_share)
    cases = make_plan(suite, tables, host).cases
    with host_lock(request.wait_s, interrupt) as lock:
        lock.name_holder("verify")
        transport = LocalTransport(programs, interrupt, lock.descriptor)
        begun = _begun(host) if request.earlier is None else _resumable(request.earlier(), host)
        run = _Verification(request, begun, programs, tables, cases, transport, keeper, interrupt)
        run.not_run |= not_run
        return run.run()


def _is_here(name: str, host: HostInventory) -> bool:
    """Whether the host has what the subsystem is about: a GPU that is no CPU."""
    return not find_subsystem(name).has_devices or bool(_gpus(host))


def _gpus(host: HostInventory) -> tuple[Gpu, ...]:
    devices = () if host.gpus is None else host.gpus.devices
    return tuple(one for one in devices if one.type != "cpu")


def _begun(host: HostInventory) -> Verification:
    return Verification(
        id=new_job_id("verify"),
        hostname=host.hostname,
        machine=host.machine,
        cpu=host.cpu.model_name,
        cpus=tuple(sorted(host.allowed_cpus)),
        gpus=_gpus(host),
        began_unix_s=time.time(),
    )


def _resumable(earlier: Verification, host: HostInventory) -> Verification:
    """Return an earlier verification of this host. Raise UsageError if it is of another one."""
    now = _begun(host)
    if (earlier.machine, earlier.cpu) != (now.machine, now.cpu):
        raise UsageError(
            f"verification {earlier.id} is of {earlier.hostname}, another machine; "
            "leave out --resume to begin a new one"
        )
    before = {one.index: one for one in earlier.gpus}
    if any(before.get(one.index, one) != one for one in now.gpus):
        raise UsageError(
            f"verification {earlier.id} is of other GPUs, or they have other numbers now; "
            "leave out --resume to begin a new one"
        )
    gpus = before | {one.index: one for one in now.gpus}
    return earlier.model_copy(update={"cpus": now.cpus, "gpus": tuple(gpus.values())})


def suite_of_kernels(
    tables: Mapping[str, Table], memory_share: float
) -> tuple[Suite, dict[str, str]]:
    """Return every kernel of these programs that can run here, and why the others cannot."""
    cases, not_run = [], {}
    for name, table in tables.items():
        for workload in table.workloads:
            full = f"{name}.{workload.name}"
            if workload.naive or full in UNCHECKED:
                continue
            # The table knows the first GPU alone; each case of another one is tried.
            if workload.unsupported is not None and workload.param(DEVICE) is None:
                not_run[full] = workload.unsupported
                continue
            choices = {param.name for param in workload.params if param.type == "choice"}
            params: dict[str, ParamValue] = {}
            if workload.kind == "team":
                params["n"] = TEAM_ROWS
            if full == PATTERNS:
                params["size_share"] = memory_share
            grid: dict[str, GridAxis] = {one: "all" for one in KERNEL_PARAMS if one in choices}
            if workload.param(DEVICE) is not None:
                grid[DEVICE] = "all"
            cases.append(SuiteCase(workload=full, params=params, grid=grid))
    return Suite(name=AD_HOC, cases=tuple(cases)), not_run


def placements(subsystem: str, cpus: tuple[int, ...], position: int) -> Iterator[tuple[int, ...]]:
    """Yield the CPUs of each trial of a case: all of them, then, of the cpu subsystem, the next one
    alone. Whatever their numbers, as many positions as there are CPUs have each of them first, and
    each alone. The checksums of two trials in a row are of different CPUs.

    A trial on a GPU runs where the system puts it.
    """
    if subsystem == "gpu":
        yield ()
        return
    first = position % len(cpus)
    yield (*cpus[first:], *cpus[:first])
    if subsystem == "cpu" and len(cpus) > 1:
        yield (cpus[(position + 1) % len(cpus)],)


class _Verification:
    """One verification while it runs."""

    def __init__(
        self,
        request: VerifyRequest,
        begun: Verification,
        programs: Mapping[str, Program],
        tables: Mapping[str, Table],
        cases: Sequence[PlannedCase],
        transport: LocalTransport,
        keeper: Keeper,
        interrupt: Interrupt,
    ) -> None:
        self._request = request
        self._begun = begun
        self._programs = programs
        self._tables = tables
        self._cases = cases
        self._transport = transport
        self._keeper = keeper
        self._interrupt = interrupt
        first = secrets.randbelow(SEED_MOST // 2) if request.seed is None else request.seed
        self._first_seed = first
        self._seeds = list(begun.seeds)
        self._exposures = {(one.subsystem, one.unit): one for one in begun.exposures}
        self._findings = list(begun.findings)
        self.not_run: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._failures: Counter[str] = Counter()
        # What the first CPU made of a kernel and its last seed, and which CPU that was.
        self._checksums: dict[str, tuple[int, str, int]] = {}
        self._clocks = list(begun.clock_hertz or ())
        self._celsius = [] if begun.celsius_most is None else [begun.celsius_most]
        self._errors_before = error_counts()
        self._ended = "runs"
        self._began_s = time.monotonic()
        self._kept_s = self._began_s
        self._kept_news = self._news

    def run(self) -> tuple[Verification, Interrupted | None]:
        """Run turns until the time is over; return what was checked, and the signal that ended it
        earlier."""
        self._keep()
        signal = None
        try:
            self._run_turns()
        except Interrupted as interrupted:
            signal, self._ended = interrupted, interrupted.signum.name
        except ResourceError as error:  # must not hide what was found
            self._cut_short(error)
        try:
            return self._keep(), signal
        except ResourceError as error:
            self._cut_short(error)
            return self._result(), signal

    def _cut_short(self, error: ResourceError) -> None:
        self._failed["hostbench"], self._ended = error.message, "a missing resource"
        self._keeper.say(error.message)

    def _run_turns(self) -> None:
        rounds = {name: self._turns(name) for name in self._tables}
        used_s = dict.fromkeys(rounds, 0.0)
        while rounds and self._left_s > 0:
            # Each subsystem gets the same time, whatever its trials take.
            name = min(rounds, key=used_s.__getitem__)
            begun_s = time.monotonic()
            turn_and_seed = next(rounds[name], None)
            if turn_and_seed is None:
                del rounds[name]
                continue
            self._run_turn(*turn_and_seed)
            used_s[name] += time.monotonic() - begun_s
            if len(self._findings) >= len(self._begun.findings) + FINDINGS_MOST:
                self._ended = "errors"
                return
            if self._news != self._kept_news or time.monotonic() > self._kept_s + KEEP_EVERY_S:
                self._keep()
        self._ended = "time"

    @property
    def _cpus(self) -> tuple[int, ...]:
        """The CPUs that may be used now: some may have gone offline."""
        return tuple(sorted(os.sched_getaffinity(0)))

    @property
    def _left_s(self) -> float:
        return self._began_s + self._request.duration_s - time.monotonic()

    def _turns(self, name: str) -> Iterator[tuple[_Turn, int]]:
        """Yield the turns of a subsystem, round after round with another seed each, until none of
        its cases can run."""
        cases = [case for case in self._cases if split_workload(case.workload)[0] == name]
        if name == "mem":  # the longest first: a short verification has it, too
            cases.sort(key=lambda case: case.workload != PATTERNS)
        for round_ in itertools.count():
            seed = (self._first_seed + round_) % (SEED_MOST + 1)
            if not any(self._can_run(case) for case in cases):
                return
            for position, case in enumerate(cases):
                if name == "cpu" and self._can_run(case):
                    self._interrupt.wait(IDLE_S)
                for cpus in placements(name, self._cpus, round_ + position):
                    if self._can_run(case):
                        yield _Turn(case, cpus), seed

    def _can_run(self, case: PlannedCase) -> bool:
        return case.title not in self.not_run and self._failures[case.title] < FAILURES_MOST

    def _run_turn(self, turn: _Turn, seed: int) -> None:
        if seed not in self._seeds:
            self._seeds.append(seed)
            self._keeper.say(f"seed {seed}")
        trial = self._trial(turn, seed)
        try:
            wrong = self._checked(turn, trial, seed)
        except TrialFailed as failure:
            if failure.code != "wrong_result":
                self._failures[turn.case.title] += 1
                self._failed[turn.case.title] = failure.message
                self._keeper.say(f"{turn.case.title} failed: {failure.message}")
                return
            wrong = failure
        if wrong is not None:
            self._found(turn, trial, seed, wrong)

    def _trial(self, turn: _Turn, seed: int) -> Trial:
        subsystem, name = split_workload(turn.case.workload)
        workload = find_workload(self._tables, turn.case.workload)
        params = {name: turn.case.params[name] for name in turn.case.given}
        duration_s = PATTERNS_S if turn.case.workload == PATTERNS else TRIAL_S[subsystem]
        params["duration_s"] = max(LEAST_S, min(duration_s, self._left_s))
        if workload.param("warmup_s") is not None:
            params["warmup_s"] = WARMUP_S
        if turn.cpus:
            params["cpus"] = ",".join(map(str, turn.cpus))
            params["threads"] = len(turn.cpus)
        if workload.param(SEED) is not None:
            params[SEED] = seed
        return Trial(subsystem=subsystem, workload=name, params=params, timeout_s=TIMEOUT_S)

    def _checked(self, turn: _Turn, trial: Trial, seed: int) -> TrialFailed | None:
        """Run a trial and count what it checked. Return what is wrong if its checksum is not that
        of another CPU. Raise TrialFailed, Interrupted."""
        wrong, start = None, None
        try:
            for event in self._transport.run(trial):
                if isinstance(event, StartEvent):
                    wrong, start = self._compared(turn, event, seed), event
                elif isinstance(event, SkipEvent):
                    self.not_run[turn.case.title] = event.reason
                elif isinstance(event, EndEvent) and start is not None and wrong is None:
                    self._count(turn, start, event)
        except TrialFailed as failure:
            # A CPU that computes wrong may crash the program, too.
            if wrong is None or failure.code == "wrong_result":
                raise
        return wrong

    def _compared(self, turn: _Turn, start: StartEvent, seed: int) -> TrialFailed | None:
        checksum, cpu = start.facts.get("checksum"), start.placement.cpus[0]
        if checksum is None:
            return None
        of_seed, first, other = self._checksums.get(turn.case.case, (None, checksum, cpu))
        if of_seed != seed:
            self._checksums[turn.case.case] = (seed, checksum, cpu)
        if of_seed != seed or checksum == first:
            return None
        # Each found its own pass right, so which of them computes wrong is unknown.
        message = (
            f"the checksums of one pass differ: {checksum} on CPU {cpu}, {first} on CPU {other}"
        )
        return TrialFailed("wrong_result", message)

    def _unit(self, turn: _Turn) -> str:
        workload = find_workload(self._tables, turn.case.workload)
        counts_bytes = any(metric.name == "work_bytes" for metric in workload.metrics)
        return "byte" if counts_bytes else "operation"

    def _count(self, turn: _Turn, start: StartEvent, end: EndEvent) -> None:
        unit = self._unit(turn)
        checks: Counter[str] = Counter()
        for thread in end.threads:
            compared = thread.operations
            size = start.params.get("size_bytes")
            if turn.case.workload in LAST_PASS and isinstance(size, int):
                compared = min(compared, size // len(end.threads))
            checks[str(thread.cpu)] += compared
        before = self._exposure(turn.subsystem, unit)
        of_cpu: Mapping[str, int] = checks if turn.cpus else {}
        device, total = turn.case.params.get(DEVICE), sum(checks.values())
        of_gpu = {} if device is None else {str(device): total}
        self._exposures[turn.subsystem, unit] = before.model_copy(
            update={
                "trials": before.trials + 1,
                "checks": before.checks + total,
                "checks_of_cpu": _added(before.checks_of_cpu, of_cpu),
                "checks_of_gpu": _added(before.checks_of_gpu, of_gpu),
            }
        )
        if turn.subsystem == "cpu" and (clock := end.metrics.get("clock_hertz")) is not None:
            self._clocks.append(clock)
            self._clocks = [min(self._clocks), max(self._clocks)]
        if (celsius := hottest_celsius()) is not None:
            self._celsius = [max(celsius, *self._celsius)] if self._celsius else [celsius]

    def _exposure(self, subsystem: str, unit: str) -> Exposure:
        return self._exposures.get((subsystem, unit), Exposure(subsystem=subsystem, unit=unit))

    def _found(self, turn: _Turn, trial: Trial, seed: int, failure: TrialFailed) -> None:
        """Record a wrong result, then try again where it was, and elsewhere."""
        unit = self._unit(turn)
        before = self._exposure(turn.subsystem, unit)
        self._exposures[turn.subsystem, unit] = before.model_copy(
            update={"trials": before.trials + 1, "errors": before.errors + 1}
        )
        path = self._programs[turn.subsystem].path
        finding = Finding(
            time_unix_s=time.time(),
            workload=turn.case.workload,
            params=trial.params,
            seed=seed,
            cpus=str(trial.params.get("cpus", "")),
            wrong=failure.wrong,
            message=failure.message,
            command=shlex.join([str(path), *command_line(trial.workload, trial.params)]),
        )
        self._findings.append(finding)
        self._keeper.say(f"WRONG {turn.case.title}: {failure.message}")
        self._keep()
        # A second finding of the same place needs no second proof.
        if not any(_same_place(finding, other) for other in self._findings[:-1]):
            for cpus in self._suspects(turn, failure.wrong):
                retest = self._retested(_Turn(turn.case, cpus), seed)
                finding = finding.model_copy(update={"retests": (*finding.retests, retest)})
                self._findings[-1] = finding
        self._keep()

    def _suspects(self, turn: _Turn, wrong: WrongValue | None) -> Iterator[tuple[int, ...]]:
        """Yield where to try again: on the CPU that is named, then on another one; of a memory,
        where it was."""
        if turn.subsystem != "cpu" or wrong is None:
            yield turn.cpus
            return
        yield (wrong.cpu,)
        yield from itertools.islice(((cpu,) for cpu in self._cpus if cpu != wrong.cpu), 1)

    def _retested(self, turn: _Turn, seed: int) -> Retest:
        trial, wrong, trials = self._trial(turn, seed), 0, 0
        for _ in range(RETESTS[turn.subsystem]):
            try:
                found = self._checked(turn, trial, seed)
            except TrialFailed as failure:
                if failure.code != "wrong_result":
                    continue  # it says nothing of the CPU
                found = failure
            trials += 1
            wrong += found is not None
        return Retest(cpus=",".join(map(str, turn.cpus)), wrong=wrong, trials=trials)

    @property
    def _news(self) -> tuple[int, ...]:
        """What is kept as soon as there is more of it: how many of each."""
        failures = self._failures.total()
        return len(self._seeds), len(self._exposures), len(self.not_run), failures

    def _keep(self) -> Verification:
        self._kept_s, self._kept_news = time.monotonic(), self._news
        found = self._result()
        self._keeper.keep(found)
        return found

    def _result(self) -> Verification:
        """Return what was checked so far, with what the earlier parts had checked."""
        begun = self._begun
        counts = dict(begun.hardware_errors)
        for source, count in error_counts().items():
            more = max(0, count - self._errors_before.get(source, 0))
            counts[source] = counts.get(source, 0) + more
        return begun.model_copy(
            update={
                "elapsed_s": begun.elapsed_s + time.monotonic() - self._began_s,
                "parts": begun.parts + (self._request.earlier is not None),
                "seeds": tuple(self._seeds),
                "exposures": tuple(self._exposures.values()),
                "findings": tuple(self._findings),
                "not_run": {**begun.not_run, **self.not_run},
                "failed": {**begun.failed, **self._failed},
                "hardware_errors": counts,
                "clock_hertz": (min(self._clocks), max(self._clocks)) if self._clocks else None,
                "celsius_most": max(self._celsius, default=None),
                "ended": self._ended,
            }
        )


def _added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of two counts by number, in the order of the numbers."""
    numbers = sorted({*before, *more}, key=int)
    return {one: before.get(one, 0) + more.get(one, 0) for one in numbers}


def _same_place(one: Finding, other: Finding) -> bool:
    return _place(one) == _place(other)


def _place(finding: Finding) -> tuple[str, int | None, ParamValue | None]:
    cpu = None if finding.wrong is None else finding.wrong.cpu
    return finding.workload, cpu, finding.gpu
