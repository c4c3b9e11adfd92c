"""What a subsystem adds to `hostbench doctor`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostbench.doctor.check import Check


class HasChecks(ABC):
    """Base class of a subsystem with checks, in addition to hostbench.model.subsystem.Subsystem."""

    @abstractmethod
    def checks(self) -> "Sequence[Check]":
        """Return what `hostbench doctor` checks for this subsystem alone."""
