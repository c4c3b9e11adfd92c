"""A check, and how it reports what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum

from hostbench.doctor.view import Reading, Tally, View
from hostbench.model.doctor import Evidence, Place, Remedy, State
from hostbench.model.host import Virtualisation

# The subsystems of a check that applies to all.
ALL: tuple[str, ...] = ()

Seen = Reading | Tally | Evidence

KEPT_BY_HYPERVISOR = (
    "hidden by the hypervisor; in a virtual machine only the host's owner can see or change this"
)
PROCESSES_HIDDEN = "not every process of this host can be seen from here"


class Topic(StrEnum):
    """The groups of findings, in the order of a report."""

    NOISE = "other work on this host"
    SHARE = "share of the host"
    CLOCK = "clock"
    TEMPERATURE = "temperature"
    POWER = "power"
    CORES = "CPUs"
    MEMORY = "memory"
    KERNEL = "kernel"
    ENVIRONMENT = "environment"
    RIGHTS = "rights"
    STORAGE = "results directory"
    SCRATCH = "scratch directory"
    NETWORK = "network"
    GPU = "GPU"
    INSTALLATION = "installation"


class Reach(Enum):
    """How far down a remedy must be applied: whether it needs root, and which layers it lies
    below."""

    OWN = (False, False, False)
    INSTALLED = (True, False, False)
    STARTED = (False, True, False)  # an option at the start of the container
    KERNEL = (True, True, False)
    HARDWARE = (True, True, True)
    MACHINE = (False, True, True)  # a matter of hardware or contracts, not of rights

    @property
    def needs_root(self) -> bool:
        """Whether only root may do it."""
        return self.value[0]

    def place(self, virtualisation: Virtualisation) -> Place:
        """Return where on this host it must be applied."""
        _, outside_container, outside_vm = self.value
        if outside_vm and virtualisation.hypervisor:
            return Place.VM_OWNER
        if outside_container and virtualisation.container:
            return Place.CONTAINER_HOST
        return Place.HERE


@dataclass(frozen=True)
class Advice:
    """A remedy, before it is known where it must be applied."""

    action: str
    reach: Reach

    def placed(self, virtualisation: Virtualisation) -> Remedy:
        """Return the remedy for this host."""
        return Remedy(
            action=self.action,
            needs_root=self.reach.needs_root,
            where=self.reach.place(virtualisation),
        )


@dataclass(frozen=True)
class Outcome:
    """What a check found, before its row of the table is added."""

    state: State
    text: str
    evidence: tuple[Evidence, ...]
    advice: Advice | None = None


@dataclass(frozen=True)
class Check:
    """One row of the table. `name` is its heading in docs/doctor.md. `subsystems` are those whose
    figures depend on it, by name."""

    name: str
    topic: Topic
    title: str
    subsystems: tuple[str, ...]
    look: Callable[[View], Outcome]

    def touches(self, subsystem: str) -> bool:
        """Whether figures of this subsystem depend on what it checks."""
        return self.subsystems == ALL or subsystem in self.subsystems


def ok(text: str, *seen: Seen) -> Outcome:
    """Return that there is nothing to do."""
    return Outcome(State.OK, text, _evidence(seen))


def notice(text: str, *seen: Seen, advice: Advice | None = None) -> Outcome:
    """Return something that figures depend on, or that limits what can be measured."""
    return Outcome(State.NOTICE, text, _evidence(seen), advice)


def problem(text: str, *seen: Seen, advice: Advice | None = None) -> Outcome:
    """Return something that makes figures wrong or unsteady."""
    return Outcome(State.PROBLEM, text, _evidence(seen), advice)


def unknown(reason: str, *seen: Seen, advice: Advice | None = None) -> Outcome:
    """Return that the finding is unknown here, and why."""
    return Outcome(State.UNKNOWN, reason, _evidence(seen), advice)


def unreadable(reading: Reading) -> Outcome:
    """Return that the finding is unknown because its file cannot be read."""
    if reading.reason is not None:
        return unknown("cannot be read", reading)
    return unknown("has a value that hostbench does not know", reading)


def _evidence(seen: tuple[Seen, ...]) -> tuple[Evidence, ...]:
    return tuple(one if isinstance(one, Evidence) else one.evidence for one in seen)
