"""Theoretical limits of the cpu workloads: clock × operations per cycle × cores.

The operations per cycle come from microarchitectures.yaml, where every figure names its sources.
What is not known stays unknown: such a limit is None and says why, never a guess.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict

from hostbench.models.host import Cpu
from hostbench.models.limit import Factor, Limit

TABLE_PATH = Path(__file__).with_name("microarchitectures.yaml")
TOLERANCE = 0.02

Width = Literal["scalar", 128, 256, 512]
CoreType = Literal["performance", "efficiency", "mixed"]
OTHERS = "others"

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
FLOAT_BITS = {"fp32": 32, "fp64": 64}
DTYPE_BITS = INTEGER_BITS | FLOAT_BITS

X86, ARM = "x86_64", "aarch64"

# isa: (operand width in bits, architecture; None: both)
ISAS: dict[str, tuple[Width, str | None]] = {
    "scalar": ("scalar", None),
    "sse2": (128, X86),
    "avx2": (256, X86),
    "avx512": (512, X86),
    "neon": (128, ARM),
}

CLOCK_UNKNOWN = (
    "no sound source for the highest clock: a virtual machine hides it, and on bare metal it moves "
    "with temperature, power and the number of active cores"
)


@dataclass(frozen=True)
class Work:
    """What one instruction of a workload is: its class by data type, its operations per lane."""

    instructions: Mapping[str, str]
    operations_per_lane: int


WORKLOADS = {
    "fma": Work(instructions=dict.fromkeys(FLOAT_BITS, "fp_fma"), operations_per_lane=2),
    "add_sub": Work(
        instructions=dict.fromkeys(INTEGER_BITS, "int_add") | dict.fromkeys(FLOAT_BITS, "fp_add"),
        operations_per_lane=1,
    ),
}


@dataclass(frozen=True)
class Unknown:
    """Why something has no value."""

    reason: str


@dataclass(frozen=True)
class CpuIdentity:
    """What a CPU says it is.

    x86: `vendor` is the CPUID string, `family`, `model` and `stepping` are the displayed numbers.
    aarch64: `vendor` is the implementer and `model` the part number of MIDR_EL1.
    `flags` as in /proc/cpuinfo. `core_type` is the kind of the cores the trial used, for hybrid
    processors only: /sys/devices/cpu_core/cpus and /sys/devices/cpu_atom/cpus list the two kinds.
    Where these do not exist on bare metal, all cores are performance cores; in a virtual machine
    nothing tells, so it stays None.
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
    def from_inventory(cls, cpu: Cpu, core_type: CoreType | None = None) -> Self:
        """The identity of the inventory's CPU."""
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
        """The identity as a person would say it."""
        if self.architecture == ARM:
            return f"implementer {_hex(self.vendor)} part {_hex(self.model)}"
        return f"{self.vendor} family {self.family} model {self.model}"

    @property
    def claim(self) -> str:
        """The identity with the register that says so."""
        return f"{'MIDR_EL1' if self.architecture == ARM else 'CPUID'} says {self}"


def _hex(number: object) -> str:
    return f"{number:#x}" if isinstance(number, int) else str(number)


# ---- the table ----


class TableModel(BaseModel):
    """Base of the table."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Throughput(TableModel):
    """Instructions per cycle and core of one instruction class, by operand width.

    A missing width does not exist; a null cell is not known, and `unknown` says why. A cell may
    differ by data type: {dtype: figure, …, "others": figure}.
    """

    per_cycle: dict[Width, float | dict[str, float | None] | None]
    sources: tuple[str, ...]
    unknown: str | None = None

    def rate(self, width: Width, dtype: str) -> float | None:
        """Instructions per cycle, or None when it is not known."""
        cell = self.per_cycle[width]
        if isinstance(cell, dict):
            return cell.get(dtype, cell[OTHERS])
        return cell


class Match(TableModel):
    """Which CPUs a row is for. `models` holds numbers and inclusive (first, last) ranges."""

    vendor: str | int
    family: int | None = None
    models: tuple[int | tuple[int, int], ...]
    core_type: Literal["performance", "efficiency"] | None = None

    def covers(self, identity: CpuIdentity) -> bool:
        """Whether vendor, family and model are this row's; the kind of core is not looked at."""
        if identity.model is None or identity.vendor != self.vendor:
            return False
        if self.family is not None and identity.family != self.family:
            return False
        return any(
            first <= identity.model <= last
            for first, last in ((m, m) if isinstance(m, int) else m for m in self.models)
        )


class Refinement(TableModel):
    """Cells that hold for the processors whose model name has `pattern`."""

    pattern: str
    title: str
    instructions: dict[str, Throughput]


class Microarchitecture(TableModel):
    """One row. `refinement`: the entry of `by_model_name` that holds for the CPU identified."""

    name: str
    title: str
    match: tuple[Match, ...]
    requires: frozenset[str] = frozenset()
    excludes: frozenset[str] = frozenset()
    note: str | None = None
    instructions: dict[str, Throughput]
    by_model_name: tuple[Refinement, ...] = ()
    refinement: Refinement | None = None

    @property
    def architecture(self) -> str:
        """x86 vendors are strings, Arm implementers are numbers."""
        return ARM if isinstance(self.match[0].vendor, int) else X86

    def refined(self, model_name: str | None) -> Self:
        """This row with what the model name adds."""
        for refinement in self.by_model_name:
            if model_name and re.search(refinement.pattern, model_name):
                title = f"{self.title}, {refinement.title} ({model_name})"
                return self.model_copy(update={"title": title, "refinement": refinement})
        return self

    def throughput(self, instruction: str, width: Width) -> Throughput | None:
        """The entry that names the width, or None when the row has no such instruction."""
        refined = self.refinement.instructions if self.refinement else {}
        for entry in (refined.get(instruction), self.instructions.get(instruction)):
            if entry and width in entry.per_cycle:
                return entry
        return None


class FeatureRule(TableModel):
    """A micro-architecture that follows from flags alone, when the model number is masked."""

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


class Table(TableModel):
    """microarchitectures.yaml, with the text of every source in place of its short name."""

    sources: dict[str, str]
    microarchitectures: tuple[Microarchitecture, ...]
    feature_rules: tuple[FeatureRule, ...]
    virtual_model_names: tuple[str, ...]

    def row(self, name: str) -> Microarchitecture:
        """The row called `name`."""
        return next(row for row in self.microarchitectures if row.name == name)


@functools.cache
def table() -> Table:
    """The table, read once. A mistake in it is a programming error and raises."""
    raw = yaml.safe_load(TABLE_PATH.read_text(encoding="utf-8"))
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
    """The micro-architecture of a CPU.

    Hypervisors mask the model number, so a row counts only where its flags agree; otherwise a
    rule that rests on flags alone must decide.
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
    """The row that the CPUID numbers name, if the flags do not contradict it."""
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


# ---- the limits ----


def operations_per_cycle(
    microarchitecture: Microarchitecture, workload: str, dtype: str, isa: str
) -> Factor | Unknown:
    """Operations per cycle and core: instructions per cycle × lanes × operations per lane."""
    work = WORKLOADS.get(workload)
    if work is None or dtype not in work.instructions:
        return Unknown(f"no instruction is known for workload {workload!r} with dtype {dtype!r}")
    width, architecture = ISAS.get(isa, (None, None))
    if width is None or architecture not in (None, microarchitecture.architecture):
        return Unknown(f"no operand width is known for isa {isa!r} on {microarchitecture.title}")
    instruction = work.instructions[dtype]
    throughput = microarchitecture.throughput(instruction, width)
    if throughput is None:
        return Unknown(f"{microarchitecture.title} has no {width}-bit {instruction}")
    rate = throughput.rate(width, dtype)
    if rate is None:
        return Unknown(f"{microarchitecture.title}, {instruction} {isa}: {throughput.unknown}")
    lanes = 1 if width == "scalar" else width // DTYPE_BITS[dtype]
    note = [f"note: {microarchitecture.note}"] if microarchitecture.note else []
    return Factor(
        name="operations_per_cycle",
        value=rate * lanes * work.operations_per_lane,
        unit="operation/cycle",
        source=(
            f"{microarchitecture.title}: {rate:g} {instruction} ({isa}) a cycle × {lanes} "
            f"{'lane' if lanes == 1 else 'lanes'} of {dtype} × {work.operations_per_lane} per lane "
            f"({'; '.join((*throughput.sources, *note))})"
        ),
    )


def limits(
    identity: CpuIdentity,
    workload: str,
    params: Mapping[str, object],
    metrics: Mapping[str, object],
    placement: Mapping[str, object],
) -> dict[str, Limit]:
    """The limits of a trial, by metric; a workload that has none gives an empty dictionary.

    `params`, `metrics` and `placement` are those of the trial's start and end events. Limits are
    in the metric's unit: operation/s, or Hz for the clock.
    """
    if workload == "clock":
        return {"clock_hertz": _null("Hz", CLOCK_UNKNOWN)}
    if workload not in WORKLOADS:
        return {}
    factors = (
        _clock(metrics),
        _identified_operations_per_cycle(identity, workload, params),
        _cores(placement),
    )
    return {"operations_per_second": _product("operation/s", factors)}


def _product(unit: str, factors: Iterable[Factor | Unknown]) -> Limit:
    known: list[Factor] = []
    for factor in factors:
        if isinstance(factor, Unknown):
            return _null(unit, factor.reason)
        known.append(factor)
    return Limit(
        value=math.prod(factor.value for factor in known),
        unit=unit,
        factors=tuple(known),
        tolerance=TOLERANCE,
    )


def _null(unit: str, reason: str) -> Limit:
    return Limit(value=None, unit=unit, tolerance=TOLERANCE, reason=reason)


def _clock(metrics: Mapping[str, object]) -> Factor | Unknown:
    hertz = _positive(metrics.get("clock_hertz"))
    if hertz is None:
        return Unknown("the trial measured no clock (clock_hertz)")
    return Factor(
        name="clock",
        value=hertz,
        unit="Hz",
        source="dependent-add chain measured in this trial under the same vector licence",
    )


def _identified_operations_per_cycle(
    identity: CpuIdentity, workload: str, params: Mapping[str, object]
) -> Factor | Unknown:
    found = identify(identity)
    if isinstance(found, Unknown):
        return found
    factor = operations_per_cycle(
        found.microarchitecture, workload, str(params.get("dtype")), str(params.get("isa"))
    )
    if isinstance(factor, Unknown):
        return factor
    return factor.model_copy(update={"source": f"{found.how}. {factor.source}"})


def _cores(placement: Mapping[str, object]) -> Factor | Unknown:
    cores = _positive(placement.get("cores"))
    if cores is None:
        return Unknown("the trial did not say how many cores it used (placement.cores)")
    return Factor(name="cores", value=cores, unit="core", source="distinct cores used")


def _positive(value: object) -> float | None:
    """`value` as a positive finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None
