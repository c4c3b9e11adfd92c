"""The work of a trial: our program, or a peer beside it, on the file that is kept for its job."""

import contextlib
import threading
import time
from collections.abc import Generator, Iterator

from hostbench.base.errors import ResourceError
from hostbench.base.interrupt import Interrupt
from hostbench.base.place import REBUILD
from hostbench.host.scratch import Scratch
from hostbench.model.trial import Trial
from hostbench.programs.program import Program, load_program
from hostbench.run.local import LocalTransport
from hostbench.service.trial import WorkEvent

# A service is not informed that a job is over. The job's file is removed when another job begins,
# or this long after its last trial: between two trials, a job may wait for an idle host or measure
# another subsystem.
KEPT_S = 600.0


class InstalledProgram:
    """The program as it is on this host now."""

    def __init__(self, subsystem: str) -> None:
        """Raise ResourceError when there is none."""
        self._subsystem = subsystem
        self._mutex = threading.Lock()
        self._program = load_program(subsystem)

    @property
    def as_loaded(self) -> Program:
        """The program as it was last read."""
        return self._program

    def now(self) -> Program:
        """Return the program with its table. This takes some time when it was replaced, so do not
        call it on the event loop. Raise ResourceError."""
        with self._mutex:
            if not self.unchanged():
                self._program = load_program(self._subsystem)
            return self._program

    def unchanged(self) -> bool:
        """Whether its file is still the one that was read. Raise ResourceError when it is gone."""
        path = self._program.path
        try:
            return Program.fingerprint_of(path.stat()) == self._program.fingerprint
        except OSError as error:
            raise ResourceError(f"{path}: {error.strerror}; {REBUILD}") from None


class KeptScratch:
    """Lends the file to one trial at a time, the one that holds the host's lock. A job is
    identified by its fence. When the process ends, the file disappears."""

    def __init__(self, kept_s: float = KEPT_S) -> None:
        """`kept_s`: how long the file is kept without a trial."""
        self._kept_s = kept_s
        self._mutex = threading.Lock()
        self._scratch = Scratch()
        self._fence: int | None = None
        self._lent = False
        self._until_s = 0.0
        self._timer: threading.Timer | None = None

    @contextlib.contextmanager
    def lent(self, fence: int | None) -> Iterator[Scratch]:
        """Lend the file of the job with this fence. None: a trial by hand, whose file ends with it
        and needs the room of the kept one."""
        if fence is None:
            self._let_go()
            with contextlib.closing(Scratch()) as own:
                yield own
            return
        self._take(fence)
        try:
            yield self._scratch
        finally:
            self._give_back()

    def _take(self, fence: int) -> None:
        with self._mutex:
            assert not self._lent, "the host's lock lets one trial through at a time"
            self._cancel()
            if fence != self._fence:
                self._scratch.close()
            self._fence, self._lent = fence, True

    def _let_go(self) -> None:
        with self._mutex:
            if not self._lent:
                self._cancel()
                self._scratch.close()

    def _give_back(self) -> None:
        with self._mutex:
            self._lent = False
            self._until_s = time.monotonic() + self._kept_s
            self._timer = threading.Timer(self._kept_s, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _cancel(self) -> None:
        """End the timer's thread, which would otherwise sleep on for each trial of a job."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _expire(self) -> None:
        """Close the file, unless a trial has started meanwhile."""
        with self._mutex:
            if not self._lent and time.monotonic() >= self._until_s:
                self._scratch.close()


class TrialWork:
    """See hostbench.service.trial.Work."""

    def __init__(self, trial: Trial, program: Program, scratch: KeptScratch) -> None:
        """`scratch` is the service's; the trial's fence identifies the job whose file it works
        on."""
        self._trial = trial
        self._program = program
        self._scratch = scratch

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[WorkEvent, None, None]:
        """Yield the events of the trial."""
        programs = {self._trial.subsystem: self._program}
        with self._scratch.lent(self._trial.fence) as scratch:
            transport = LocalTransport(programs, interrupt, lock_descriptor, scratch)
            yield from transport.run(self._trial)
