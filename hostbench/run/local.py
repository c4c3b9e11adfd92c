"""The local transport: a trial is a child process on this host.

A trial inherits its session as a file in memory. On a command line, all users of the host could
read the token.
"""

import contextlib
import os
from collections.abc import Generator, Iterator, Mapping

from hostbench.base.errors import ResourceError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.host.processes import OthersMeter
from hostbench.host.scratch import PARAM as SCRATCH_PARAM
from hostbench.host.scratch import Scratch, takes_scratch
from hostbench.model.events import EndEvent, ParamValue
from hostbench.model.peer import TrialEvent
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import SessionPlace
from hostbench.model.table import Workload
from hostbench.model.trial import Trial, TrialFailed
from hostbench.plan.workloads import find_workload
from hostbench.programs.child import Child
from hostbench.programs.peer_trial import LocalPeers
from hostbench.programs.program import Program
from hostbench.programs.stream import EventStream

# The parameter of scope host for the descriptor of a session's file.
SESSION_PARAM = "session_fd"


class LocalTransport:
    """Runs trials with the programs of this host, and with those of its peers.

    The programs inherit the lock's descriptor, so the host stays locked as long as one of them
    lives, even if this process ends. Programs that work on a file inherit that, too: it is filled
    once per job and needs no name.
    """

    def __init__(
        self,
        programs: Mapping[str, Program],
        interrupt: Interrupt,
        lock_descriptor: int | None,
        scratch: Scratch | None = None,
    ) -> None:
        """If `scratch` is None, each trial of a program that works on a file makes its own."""
        self._programs = programs
        self._scratch = scratch
        self._interrupt = interrupt
        self._inherited: tuple[int, ...] = () if lock_descriptor is None else (lock_descriptor,)
        self._peers = LocalPeers(interrupt, self._inherited)

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        return self._run_own(trial) if trial.tool == OWN_TOOL else self._run_peer(trial)

    def _run_peer(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        yield from self._peers.run(trial, self._lent_fd(trial))

    def _run_own(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        program = self._programs[trial.subsystem]
        _check_unchanged(program)
        workload = find_workload(
            {trial.subsystem: program.table}, f"{trial.subsystem}.{trial.workload}"
        )
        stream = EventStream(trial, workload)
        arguments = command_line(trial.workload, trial.params)
        others = OthersMeter(disks=self._takes_scratch(trial))
        with contextlib.ExitStack() as lent:
            descriptors = self._descriptors(trial, lent)
            arguments += [f"--{name.replace('_', '-')}={fd}" for name, fd in descriptors.items()]
            inherited = (*self._inherited, *descriptors.values())
            child = lent.enter_context(Child(program.path, arguments, self._interrupt, inherited))
            try:
                for line in child.lines(trial.timeout_s):
                    yield stream.take(line)
                    if stream.last is not None:
                        child.expect_end()
                exit_code = child.wait()
            except TrialFailed as failure:
                raise _with_last_errors(failure, child.last_errors()) from None
        stream.finish(exit_code, child.last_errors())
        if isinstance(stream.last, EndEvent):
            yield others.taken()

    def _descriptors(self, trial: Trial, lent: contextlib.ExitStack) -> dict[str, int]:
        """Return the descriptors that the program inherits, by the parameter that takes them.

        `lent` closes those that belong to this trial alone. Raise TrialFailed or ResourceError.
        """
        descriptors = {}
        scratch_fd = self._scratch_fd(trial)
        if scratch_fd is not None:
            descriptors[SCRATCH_PARAM] = scratch_fd
        if trial.session is not None:
            text = session_text(trial.session)
            descriptors[SESSION_PARAM] = lent.enter_context(text_descriptor("session", text))
        return descriptors

    def _scratch_fd(self, trial: Trial) -> int | None:
        """Return the file that the trial works on, or None if it needs none. Raise TrialFailed."""
        if self._scratch is None or not self._takes_scratch(trial):
            return None
        try:
            return self._scratch.descriptor()
        except ResourceError as error:
            raise TrialFailed("scratch", error.message, ExitCode.RESOURCE) from None

    def _lent_fd(self, trial: Trial) -> int | None:
        """Return the file that a peer measures in: one that a trial of ours has filled. In a new
        file it would measure holes."""
        if self._scratch is None or not self._takes_scratch(trial):
            return None
        return self._scratch.opened

    def _takes_scratch(self, trial: Trial) -> bool:
        program = self._programs.get(trial.subsystem)
        return program is not None and takes_scratch(program.table.workload(trial.workload))


def command_line(workload: str, params: Mapping[str, ParamValue]) -> list[str]:
    """Return the arguments of one call, as in docs/kernel-protocol.md."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in params.items()]
    return [workload, *options]


def _check_unchanged(program: Program) -> None:
    """Raise TrialFailed if a program was built again during a job: it is not the program that the
    result names."""
    try:
        now = program.fingerprint_of(program.path.stat())
    except OSError:
        now = None
    if now != program.fingerprint:
        raise TrialFailed(
            "program_changed",
            f"{program.path} was replaced while the job ran; start the job again",
        )


def _with_last_errors(failure: TrialFailed, last_errors: str) -> TrialFailed:
    if not last_errors:
        return failure
    return TrialFailed(
        failure.code, f"{failure.message}; its output: {last_errors}", failure.exit_code
    )


def takes_session(workload: Workload | None) -> bool:
    """Whether a workload has a far end."""
    return workload is not None and workload.param(SESSION_PARAM) is not None


def session_text(place: SessionPlace) -> str:
    """Return the content of the file: one line for each value."""
    lines = {"address": place.address, "port": place.port, "token": place.token}
    return "".join(f"{name}={value}\n" for name, value in lines.items() if value is not None)


@contextlib.contextmanager
def text_descriptor(name: str, text: str) -> Iterator[int]:
    """Open a nameless file that holds `text`, positioned at its beginning. Raise ResourceError."""
    try:
        descriptor = os.memfd_create(name)
    except OSError as error:
        raise ResourceError(f"cannot create a file in memory: {error.strerror}") from None
    try:
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
