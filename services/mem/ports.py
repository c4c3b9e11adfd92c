"""What a core can load and store in a cycle, and so what a kernel moves at most.

All data goes through these ports, so no level of the hierarchy is faster. A core whose loads and
stores also share ports (those that compute addresses) may be slower than this bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hostbench.base.units import plural
from hostbench.host.microarchitecture import CpuIdentity, Microarchitecture, Unknown, identify
from hostbench.model.events import StartEvent
from hostbench.model.host import HostInventory
from services.mem.params import ACCESSES, STORE

Width = Literal[128, 256, 512]
# The bits of a register, by instruction set.
WIDTHS: dict[str, Width] = {"sse2": 128, "avx2": 256, "avx512": 512, "neon": 128}
# The kernels of mem-bench work on numbers of this type.
DTYPE = "fp64"
LIBRARY_STORE = "libc"


@dataclass(frozen=True)
class PortBound:
    """The most that one core moves in a cycle, in bytes as STREAM counts them. `because`: what its
    ports do, with the source."""

    bytes_per_cycle: float
    because: str


def port_bound(host: HostInventory, start: StartEvent) -> PortBound | Unknown:
    """Return the bound of a trial of one of STREAM's kernels, or why it is unknown."""
    if start.params.get(STORE) == LIBRARY_STORE:
        return Unknown("the C library chooses the instructions of its copy")
    isa = str(start.params.get("isa"))
    width = WIDTHS.get(isa)
    if width is None:
        return Unknown(f"the table of micro-architectures has no loads and stores of {isa}")
    found = identify(CpuIdentity.of(host, start.placement.cpus))
    if isinstance(found, Unknown):
        return found
    return _bound(found.microarchitecture, ACCESSES[start.workload], width)


def _bound(
    row: Microarchitecture, accesses: Mapping[str, int], width: Width
) -> PortBound | Unknown:
    cycles, paces, sources = 0.0, list[str](), list[str]()
    for name in ("load", "store"):
        count, entry = accesses.get(name, 0), row.instruction(name, width, DTYPE)
        if isinstance(entry, Unknown):
            return entry
        rate = entry.rate(width, DTYPE)
        if rate is not None:
            cycles = max(cycles, count / rate)
            paces.append(_pace(name, rate))
            sources += entry.sources
        elif count > 0:
            return Unknown(f"{row.title}, {width}-bit {name}: {entry.unknown}")
    because = f"{' and '.join(paces)}, of {width} bits ({'; '.join(dict.fromkeys(sources))})"
    return PortBound(sum(accesses.values()) * width / 8 / cycles, f"{row.title}: {because}")


def _pace(name: str, rate: float) -> str:
    if rate < 1:
        return f"one {name} every {1 / rate:g} cycles"
    return f"{plural(int(rate), name)} a cycle"
