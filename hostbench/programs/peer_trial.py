"""Runs a peer on this host: as a child of the supervisor, which ends all that it starts."""

import dataclasses
import json
import os
import shutil
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from hostbench.base.cpu_times import CpuTimes, parse_cpu_times
from hostbench.base.interrupt import Interrupt
from hostbench.model.events import SkipEvent
from hostbench.model.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.model.trial import Beside, Trial, TrialFailed
from hostbench.programs.child import Child
from hostbench.programs.peer import Command, Peer, Survey
from hostbench.programs.subsystem import peers_of

SUPERVISOR = Path(__file__).with_name("supervisor.py")
# A query about a tool, such as its version, is answered at once.
ASK_TIMEOUT_S = 10.0
# The kernel counts in hundredths of a second, so a share of less time than this is no figure.
SHARES_LEAST_S = 0.5
# The supervisor itself ends a peer whose time is up, and then reports.
SUPERVISOR_GRACE_S = 10.0


class LocalPeers:
    """The peers of this host. `inherited` descriptors stay open as long as any of them runs."""

    def __init__(self, interrupt: Interrupt, inherited: Sequence[int]) -> None:
        self._interrupt = interrupt
        self._inherited = tuple(inherited)
        self._answers: dict[tuple[str, ...], str] = {}

    def run(self, trial: Trial, scratch_fd: int | None = None) -> Generator[TrialEvent, None, None]:
        """Run a peer's trial; see Transport.run. `scratch_fd` is the file that our trial worked
        on."""
        assert trial.beside is not None, "a peer's trial stands beside one of ours"
        beside = Beside(**(dict(trial.beside) | {"scratch_fd": scratch_fd, "far": trial.session}))
        peer = next(
            peer
            for peer in peers_of(trial.subsystem, trial.workload, trial.params)
            if peer.tool == trial.tool
        )
        missing = [program for program in peer.needs if shutil.which(program) is None]
        if missing:
            yield from skipped(peer, f"{' and '.join(missing)} is not installed")
            return
        try:
            survey = peer.survey(self._ask, beside)
        except TrialFailed:
            # A failure belongs to a peer; without its start event, it would be unknown which.
            yield bare_start(peer)
            raise
        if survey.unsupported is not None:
            yield _start(peer, survey, ())
            yield _skip(survey.unsupported)
            return
        command = peer.command(beside)
        yield _start(peer, survey, command.arguments)
        yield self._supervised(peer, command, trial.timeout_s, beside)

    def _ask(self, command: Sequence[str]) -> str:
        """Return the output of a command, which runs once a job."""
        key = tuple(command)
        if key not in self._answers:
            ended = self._supervise(Command(key), ASK_TIMEOUT_S)
            self._answers[key] = ended["output"] if ended["exit_code"] == 0 else ""
        return self._answers[key]

    def _supervised(
        self, peer: Peer, command: Command, timeout_s: float, beside: Beside
    ) -> PeerEndEvent:
        ended = self._supervise(command, timeout_s, beside.scratch_fd)
        before, after = (parse_cpu_times(ended.pop(name)) for name in ("stat_before", "stat_after"))
        used = Used(ended["elapsed_s"], ended["cpu_s"], ended.pop("user_s"))
        others, steal = taken_by_others(before, after, beside, used, peer.kernel_works)
        return PeerEndEvent(**ended, others_ratio=others, steal_ratio=steal)

    def _supervise(
        self, command: Command, timeout_s: float, scratch_fd: int | None = None
    ) -> dict[str, Any]:
        inherited = self._inherited if scratch_fd is None else (*self._inherited, scratch_fd)
        request = {
            "command": command.arguments,
            "files": dict(command.files),
            "links": dict(command.links),
            "report": command.report,
            "timeout_s": timeout_s,
            "inherited": inherited,
            "server": _server(command),
        }
        # -I and -S: it needs only the standard library and starts in a few milliseconds.
        arguments = ["-I", "-S", str(SUPERVISOR), json.dumps(request)]
        program = Path(sys.executable)
        with Child(program, arguments, self._interrupt, inherited, hurry=False) as child:
            lines = list(child.lines(timeout_s + SUPERVISOR_GRACE_S))
            exit_code = child.wait()
        if exit_code != 0 or len(lines) != 1:
            raise TrialFailed(
                "supervisor",
                f"the peer's supervisor ended with exit code {exit_code}: {child.last_errors()}",
            )
        ended: dict[str, Any] = json.loads(lines[0])
        return ended


def _server(command: Command) -> dict[str, Any] | None:
    """Return the server that the supervisor starts before the command."""
    if command.server is None:
        return None
    listens = command.server.listens
    assert listens is not None, "a server says where it can be reached"
    return {
        "command": command.server.arguments,
        "protocol": listens.protocol,
        "port": listens.port,
    }


def skipped(peer: Peer, what: str) -> Generator[TrialEvent, None, None]:
    """Yield the trial of a peer that cannot run because something is missing."""
    yield bare_start(peer)
    yield _skip(f"{what}; install it with: apt install {peer.package}")


def bare_start(peer: Peer) -> PeerStartEvent:
    """Return the start event of a peer that did not run: the tool and what it would have
    measured."""
    return _start(peer, Survey(version=None), ())


def _start(peer: Peer, survey: Survey, command: tuple[str, ...]) -> PeerStartEvent:
    conditions = f"; {survey.conditions}" if survey.conditions else ""
    return PeerStartEvent(
        tool=peer.tool,
        title=peer.title,
        measures=peer.measures + conditions,
        metric=None if survey.differs else peer.metric,
        unit=peer.unit,
        version=survey.version,
        library=survey.library,
        differs=survey.differs,
        command=command,
        time_unix_s=time.time(),
    )


def _skip(reason: str) -> SkipEvent:
    return SkipEvent(event="skip", reason=reason)


@dataclasses.dataclass(frozen=True)
class Used:
    """What a peer used. `user_s` is the part of `cpu_s` in its own code."""

    elapsed_s: float
    cpu_s: float
    user_s: float


def taken_by_others(
    before: dict[str, CpuTimes],
    after: dict[str, CpuTimes],
    beside: Beside,
    used: Used,
    kernel_works: bool,
) -> tuple[float | None, float | None]:
    """Return what other processes used and what the hypervisor took, as shares of the time of the
    CPUs used; None if the kernel does not report it, or the time was too short."""
    # On the CPUs of our far end, a peer only has its own server.
    far_cpus = beside.far_cpus if beside.far is None else ()
    names = [f"cpu{cpu}" for cpu in sorted({*beside.cpus, *far_cpus})]
    available_s = len(names) * used.elapsed_s
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    complete = all(name in before and name in after for name in names)
    if not complete or used.elapsed_s < SHARES_LEAST_S:
        return None, None
    steal = sum(after[name].steal - before[name].steal for name in names) / ticks_per_s
    # All of the peer's work is bound to these CPUs (except mpirun, which starts hpcc's ranks and
    # uses next to nothing).
    if kernel_works:
        busy = sum(after[name].user - before[name].user for name in names) / ticks_per_s
        foreign_s = busy - used.user_s
    else:
        busy = sum(after[name].busy_since(before[name]) for name in names) / ticks_per_s
        foreign_s = busy - used.cpu_s
    return max(0.0, foreign_s) / available_s, max(0.0, steal) / available_s
