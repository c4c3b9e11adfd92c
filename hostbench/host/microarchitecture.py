"""The micro-architecture of a CPU, and the table's data on it.

The table is microarchitectures.yaml, where every figure names its sources. An unknown value stays
unknown and says why; it is never a guess.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from hostbench.base.yaml import table_of
from hostbench.host.ports import PortUsage, Usage
from hostbench.model.host import Cpu, HostInventory

TABLE_PATH = Path(__file__).with_name("microarchitectures.yaml")

X86, ARM = "x86_64", "aarch64"
AMD = "AuthenticAMD"  # vendor, as CPUID has it
OTHERS = "others"

# The bits of a register; "scalar" is one number, "tile" an AMX register of 16 rows of 64 bytes,
# "sve" an SVE register of any length.
Width = Literal["scalar", 128, 256, 512, "tile", "sve"]
CoreType = Literal["performance", "efficiency", "mixed"]


@dataclass(frozen=True)
class Unknown:
    """Why something has no value."""

    reason: str


@dataclass(frozen=True)
class CpuIdentity:
    """How a CPU identifies itself.

    On x86, `vendor` is the CPUID string; `family`, `model` and `stepping` are the displayed
    numbers. On aarch64, `vendor` is the implementer and `model` the part number of MIDR_EL1.
    `flags` are those of /proc/cpuinfo.

    `core_type` is the kind of the cores that the trial used, on hybrid processors only:
    /sys/devices/cpu_core/cpus and /sys/devices/cpu_atom/cpus list the two kinds. If these files do
    not exist on bare metal, all cores are performance cores. In a virtual machine it is unknown and
    stays None.
    """

    architecture: str
    vendor: str | int | None
    family: int | None
    model: int | None
    stepping: int | None
    flags: frozenset[str]
    model_name: str | None = None
    core_type: CoreType | None = None

    @classmethod
    def of(cls, host: HostInventory, cpus: Iterable[int]) -> Self:
        """Return the identity of the cores `cpus` of a host."""
        return cls.from_inventory(host.cpu, core_type(host, cpus))

    @classmethod
    def from_inventory(cls, cpu: Cpu, core_type: CoreType | None = None) -> Self:
        """Return the identity of the inventory's CPU."""
        is_arm = cpu.architecture == ARM
        return cls(
            architecture=cpu.architecture,
            vendor=cpu.implementer if is_arm else cpu.vendor,
            family=cpu.family,
            model=cpu.part if is_arm else cpu.model,
            stepping=cpu.stepping,
            flags=frozenset(cpu.flags),
            model_name=cpu.model_name,
            core_type=core_type,
        )

    def __str__(self) -> str:
        """Return the identity in words."""
        if self.architecture == ARM:
            return f"implementer {_hex(self.vendor)} part {_hex(self.model)}"
        return f"{self.vendor} family {self.family} model {self.model}"

    @property
    def claim(self) -> str:
        """The identity with the register that states it."""
        return f"{'MIDR_EL1' if self.architecture == ARM else 'CPUID'} says {self}"


def core_type(host: HostInventory, cpus: Iterable[int]) -> CoreType | None:
    """Return the kind of the cores `cpus`: performance, efficiency or mixed, or None if unknown.

    Linux lists the two kinds on hybrid processors. If it lists none on bare metal, all cores are of
    one kind. A virtual machine may hide either.
    """
    performance = set(host.cpu.performance_cpus or ())
    efficiency = set(host.cpu.efficiency_cpus or ())
    used = set(cpus)
    if not performance and not efficiency:
        return None if host.virtualisation.hypervisor else "performance"
    if used <= performance:
        return "performance"
    return "efficiency" if used <= efficiency else "mixed"


def _hex(number: object) -> str:
    return f"{number:#x}" if isinstance(number, int) else str(number)


# ---- the table ----


class TableModel(BaseModel):
    """Base of the table."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Value = TypeVar("Value", float, Usage)
Cell = float | dict[str, float | None] | None
PortsCell = PortUsage | dict[str, PortUsage | None] | None


class Instruction(TableModel):
    """How a core executes one instruction class, by operand width.

    `per_cycle` is instructions per cycle and core. `ports` are the µops of one instruction, with
    the ports that each can use. A width in neither of them does not exist; a null cell is unknown,
    and `unknown` says why. A cell may differ by data type: {dtype: figure, …, "others": figure};
    without "others", the types not named do not exist.
    """

    per_cycle: dict[Width, Cell] = {}
    ports: dict[Width, PortsCell] = {}
    sources: tuple[str, ...]
    unknown: str | None = None

    def has(self, width: Width, dtype: str) -> bool:
        """Whether such an instruction exists."""
        return _names(self.per_cycle, width, dtype) or _names(self.ports, width, dtype)

    def rate(self, width: Width, dtype: str) -> float | None:
        """Return instructions per cycle, or None if unknown."""
        return _pick(self.per_cycle.get(width), dtype)

    def usage(self, width: Width, dtype: str) -> Usage | None:
        """Return the µops of one instruction, or None if unknown."""
        return _pick(self.ports.get(width), dtype)


def _names(cells: Mapping[Width, Any], width: Width, dtype: str) -> bool:
    if width not in cells:
        return False
    cell = cells[width]
    return not isinstance(cell, dict) or dtype in cell or OTHERS in cell


def _pick(cell: Value | dict[str, Value | None] | None, dtype: str) -> Value | None:
    return cell.get(dtype, cell.get(OTHERS)) if isinstance(cell, dict) else cell


class Match(TableModel):
    """The CPUs that a row is for. `models` has numbers and inclusive (first, last) ranges."""

    vendor: str | int
    family: int | None = None
    models: tuple[int | tuple[int, int], ...]
    core_type: Literal["performance", "efficiency"] | None = None

    def covers(self, identity: CpuIdentity) -> bool:
        """Whether vendor, family and model are this row's; the kind of core does not matter."""
        if identity.model is None or identity.vendor != self.vendor:
            return False
        if self.family is not None and identity.family != self.family:
            return False
        return any(
            first <= identity.model <= last
            for first, last in ((m, m) if isinstance(m, int) else m for m in self.models)
        )


class Refinement(TableModel):
    """Cells that apply to the processors whose model name has `pattern`."""

    pattern: str
    title: str
    instructions: dict[str, Instruction]


class FrontEnd(TableModel):
    """How many µops a cycle the front end passes to the schedulers."""

    issue_width: int
    sources: tuple[str, ...]


class Conflict(TableModel):
    """Classes that slow each other down in a way that ports do not describe. Without `dtypes`, they
    do so with any data type."""

    classes: frozenset[str]
    widths: frozenset[Width]
    dtypes: frozenset[str] | None = None
    unknown: str


class Microarchitecture(TableModel):
    """One row. `refinement`: the entry of `by_model_name` that applies to the identified CPU."""

    name: str
    title: str
    match: tuple[Match, ...]
    requires: frozenset[str] = frozenset()
    excludes: frozenset[str] = frozenset()
    note: str | None = None
    sve_bits: int | None = None
    front_end: FrontEnd | None = None
    instructions: dict[str, Instruction]
    conflicts: tuple[Conflict, ...] = ()
    by_model_name: tuple[Refinement, ...] = ()
    refinement: Refinement | None = None

    @property
    def architecture(self) -> str:
        """The architecture: x86 vendors are strings, Arm implementers are numbers."""
        return ARM if isinstance(self.match[0].vendor, int) else X86

    @property
    def vendor(self) -> str | None:
        """The vendor of an x86 core, as in CPUID; None for Arm."""
        vendor = self.match[0].vendor
        return vendor if isinstance(vendor, str) else None

    def refined(self, model_name: str | None) -> Self:
        """Return this row with what the model name adds."""
        for refinement in self.by_model_name:
            if model_name and re.search(refinement.pattern, model_name):
                title = f"{self.title}, {refinement.title} ({model_name})"
                return self.model_copy(update={"title": title, "refinement": refinement})
        return self

    def instruction(self, name: str, width: Width, dtype: str) -> Instruction | Unknown:
        """Return the entry of a class for the width and the data type, or Unknown."""
        refined = self.refinement.instructions if self.refinement else {}
        entries = [entry for entry in (refined.get(name), self.instructions.get(name)) if entry]
        for entry in entries:
            if entry.has(width, dtype):
                return entry
        shown = f"{width}-bit" if isinstance(width, int) else width
        if entries:
            return Unknown(f"{self.title} has no {shown} {name} of {dtype}")
        return Unknown(f"{self.title}: no source in the table for {shown} {name}")

    def conflict(self, names: set[str], width: Width, dtype: str) -> Unknown | None:
        """Return why ports do not determine how fast these classes run together, or None if they
        do."""
        for conflict in self.conflicts:
            if (
                conflict.classes <= names
                and width in conflict.widths
                and (conflict.dtypes is None or dtype in conflict.dtypes)
            ):
                return Unknown(f"{self.title}: {conflict.unknown}")
        return None


class FeatureRule(TableModel):
    """A micro-architecture that follows from flags alone, if the model number is masked."""

    microarchitecture: str
    vendor: str
    family: int
    requires: frozenset[str]
    excludes: frozenset[str] = frozenset()
    despite_virtual_model: bool = False
    because: str

    def holds(self, identity: CpuIdentity, virtual_model: bool) -> bool:
        """Whether this CPU fits the rule."""
        return (
            (identity.vendor, identity.family) == (self.vendor, self.family)
            and self.requires <= identity.flags
            and not self.excludes & identity.flags
            and (self.despite_virtual_model or not virtual_model)
        )


class WorkloadSequence(TableModel):
    """The instructions for one register full of lanes in a workload, for any instruction set.

    `steps`: instructions by class. `operations_per_lane`: what each lane has then done.
    """

    dtypes: Literal["integer", "float"]
    steps: dict[str, int]
    operations_per_lane: int


class Table(TableModel):
    """microarchitectures.yaml, with the text of every source in place of its short name."""

    sources: dict[str, str]
    sequences: dict[str, WorkloadSequence]
    microarchitectures: tuple[Microarchitecture, ...]
    feature_rules: tuple[FeatureRule, ...]
    virtual_model_names: tuple[str, ...]

    def row(self, name: str) -> Microarchitecture:
        """Return the row called `name`."""
        return next(row for row in self.microarchitectures if row.name == name)


@functools.cache
def table() -> Table:
    """Return the table, read once. An error in it is a programming error and raises."""
    raw = table_of(TABLE_PATH)
    rows = _with_source_texts(raw["microarchitectures"], raw["sources"])
    return Table.model_validate(raw | {"microarchitectures": rows})


def _with_source_texts(node: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_with_source_texts(item, texts) for item in node]
    if isinstance(node, dict):
        return {
            key: [texts[name] for name in value]
            if key == "sources"
            else _with_source_texts(value, texts)
            for key, value in node.items()
        }
    return node


# ---- which micro-architecture it is ----


@dataclass(frozen=True)
class Identification:
    """A row of the table, and how it was found."""

    microarchitecture: Microarchitecture
    how: str


def identify(identity: CpuIdentity) -> Identification | Unknown:
    """Return the micro-architecture of a CPU, or why it is unknown.

    Hypervisors mask the model number, so a row counts only if its flags agree. Otherwise a rule
    that uses only flags must decide.
    """
    virtual_model = _is_virtual_model(identity)
    named = _virtual_model_doubt(identity) if virtual_model else _named_row(identity)
    if isinstance(named, Microarchitecture):
        return Identification(named.refined(identity.model_name), identity.claim)
    for rule in table().feature_rules:
        if rule.holds(identity, virtual_model):
            return Identification(
                table().row(rule.microarchitecture), f"{named.reason}; {rule.because}"
            )
    return Unknown(f"unknown micro-architecture: {named.reason}")


def _is_virtual_model(identity: CpuIdentity) -> bool:
    name = identity.model_name or ""
    return any(re.search(pattern, name) for pattern in table().virtual_model_names)


def _virtual_model_doubt(identity: CpuIdentity) -> Unknown:
    return Unknown(
        f"the hypervisor shows its compatibility model {identity.model_name!r}, "
        "which hides the processor below"
    )


def _named_row(identity: CpuIdentity) -> Microarchitecture | Unknown:
    """Return the row for the CPUID numbers, if the flags do not contradict it."""
    claimed = [
        (row, match)
        for row in table().microarchitectures
        for match in row.match
        if row.architecture == identity.architecture and match.covers(identity)
    ]
    if not claimed:
        return Unknown(f"{identity} is not in the table")
    for row, match in claimed:
        if match.core_type in (None, identity.core_type):
            return _contradiction(identity, row) or row
    kinds = {None: "may be of either kind: core_type is not known", "mixed": "are of both kinds"}
    kind = kinds.get(identity.core_type, "are of a kind not in the table")
    return Unknown(f"{identity} is hybrid, and the cores used {kind}")


def _contradiction(identity: CpuIdentity, row: Microarchitecture) -> Unknown | None:
    if identity.architecture == X86 and not identity.flags:
        return Unknown(f"{identity.claim}, but no flags were given to check it against")
    missing, foreign = row.requires - identity.flags, row.excludes & identity.flags
    complaints = [
        f"it {verb} {', '.join(sorted(flags))}"
        for verb, flags in (("lacks", missing), ("has", foreign))
        if flags
    ]
    if not complaints:
        return None
    return Unknown(f"{identity.claim}, {row.title}, but {' and '.join(complaints)}")
