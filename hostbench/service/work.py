"""The work of a trial: our program, or a peer beside it."""

from collections.abc import Generator

from hostbench.interrupt import Interrupt
from hostbench.local import LocalTransport
from hostbench.program import Program
from hostbench.service.scratch import KeptScratch
from hostbench.service.trial import Said
from hostbench.trial import Trial


class TrialWork:
    """See hostbench.service.trial.Work."""

    def __init__(
        self, trial: Trial, program: Program, scratch: KeptScratch, fence: int | None
    ) -> None:
        """`scratch` is the service's; `fence` says whose file of it the trial works on."""
        self._trial = trial
        self._program = program
        self._scratch = scratch
        self._fence = fence

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[Said, None, None]:
        """The events of the trial."""
        programs = {self._trial.subsystem: self._program}
        with self._scratch.lent(self._fence) as scratch:
            transport = LocalTransport(programs, interrupt, lock_descriptor, scratch)
            yield from transport.run(self._trial)
