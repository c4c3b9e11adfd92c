"""The program of this service, read again when its file was replaced."""

import threading

from hostbench.errors import ResourceError
from hostbench.program import Program, load_program


class InstalledProgram:
    """The program as it is on this host now."""

    def __init__(self, subsystem: str) -> None:
        """Raises ResourceError when there is none."""
        self._subsystem = subsystem
        self._mutex = threading.Lock()
        self._program = load_program(subsystem)

    @property
    def as_loaded(self) -> Program:
        """As it was when it was last read."""
        return self._program

    def now(self) -> Program:
        """The program with its table; takes some time when it was replaced, so never on the event
        loop. Raises ResourceError."""
        with self._mutex:
            if not self.unchanged():
                self._program = load_program(self._subsystem)
            return self._program

    def unchanged(self) -> bool:
        """Whether its file is the one that was read. Raises ResourceError when it is gone."""
        path = self._program.path
        try:
            return Program.fingerprint_of(path.stat()) == self._program.fingerprint
        except OSError as error:
            raise ResourceError(
                f"{path}: {error.strerror}; build it again with make programs"
            ) from None
