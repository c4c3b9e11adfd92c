"""Theoretical limits of the cpu workloads: clock × operations per cycle × cores.

The operations per cycle follow from sequences.py (the instructions of a workload) and
microarchitectures.yaml (how fast a core executes them). An unknown value stays unknown: such a
limit is None and says why; it is never a guess.
"""

import math
from collections.abc import Iterable, Mapping

from hostbench.host.memory_limit import bandwidth_limit, cache_bytes
from hostbench.host.microarchitecture import (
    ARM,
    CpuIdentity,
    Instruction,
    Microarchitecture,
    Unknown,
    Width,
    identify,
)
from hostbench.host.ports import Bound, Usage, bound, in_words
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import NAIVE_REASON, Factor, Limit
from services.cpu.sequences import Kernel, Sequence, Step, sequence, workloads

TOLERANCE = 0.02

# Libraries choose their own kernels, which mostly execute FMA.
LIBRARY_WORKLOADS = {"gemm", "linpack"}
NAIVE_WORKLOADS = {"naive_operations"}
CLOCK_WORKLOADS = {"clock", "clock_ladder"}
# What the kernel or the caches between cores take time for, and the metric of that time.
TIMED_WORKLOADS = {
    "context_switch": "hand_over_time_s",
    "core_to_core": "hand_over_time_s",
    "page_fault": "fault_time_s",
    "process_start": "start_time_s",
    "syscall": "call_time_s",
    "wakeup": "wakeup_time_s",
}
# They execute the instructions of another one, beside something that takes no ports of these.
EXECUTES = {"roofline": "fma"}
# The widest first: (flags in /proc/cpuinfo, isa).
FMA_FLAGS = (({"avx512f"}, "avx512"), ({"avx2", "fma"}, "avx2"))

CLOCK_UNKNOWN = (
    "no sound source for the highest clock: a virtual machine hides it, and on bare metal it moves "
    "with temperature, power and the number of active cores"
)
YIELD_UNKNOWN = (
    "no vendor states what two threads of a core do together: it depends on which pipes, queues "
    "and caches the one leaves idle"
)

TIME_UNKNOWN = (
    "no vendor or kernel states how short this can be: it depends on the kernel, its mitigations, "
    "the hypervisor and the way between the cores"
)


def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """Return the limits of a trial on `host`, by metric; empty for a workload without limits.

    Limits are in the metric's unit: operation/s, byte/s, or Hz for the clock.
    """
    placement = start.placement
    found = trial_limits(
        CpuIdentity.of(host, placement.cpus),
        start.workload,
        start.params,
        end.metrics,
        placement.cores,
        sharing=len(placement.cpus) if placement.smt_shared else 0,
    )
    if start.workload == "roofline":
        cache = cache_bytes(host, placement.cpus, placement.sockets)
        size = start.params.get("size_bytes")
        found["bytes_per_second"] = bandwidth_limit(host.memory, size, cache)
    return found


def trial_limits(
    identity: CpuIdentity,
    workload: str,
    params: Mapping[str, object],
    metrics: Mapping[str, object],
    cores: int,
    sharing: int = 0,
) -> dict[str, Limit]:
    """Return the limits of a trial on `cores` distinct cores that identify themselves as
    `identity`. `sharing`: how many threads share them; 0: each thread has its own core."""
    if workload in CLOCK_WORKLOADS:
        return {"clock_hertz": _null("Hz", CLOCK_UNKNOWN)}
    if workload == "smt_yield":
        return {"yield_ratio": _null("1", YIELD_UNKNOWN)}
    if workload == "fixed_work":
        return {"quantum_time_s": _null("s", CLOCK_UNKNOWN)}
    if workload in NAIVE_WORKLOADS:
        return {"operations_per_second": _null("operation/s", NAIVE_REASON)}
    if workload in TIMED_WORKLOADS:
        return {TIMED_WORKLOADS[workload]: _null("s", TIME_UNKNOWN)}
    executed = EXECUTES.get(workload, workload)
    if executed not in workloads() | LIBRARY_WORKLOADS:
        return {}
    factors = (
        _clock(metrics),
        _identified_operations_per_cycle(identity, executed, params),
        Factor(name="cores", value=cores, unit="core", source=_cores_in_words(sharing)),
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


def _cores_in_words(sharing: int) -> str:
    shared = f", shared by {sharing} threads: a second one adds nothing to what a core can do"
    return f"distinct cores used{shared if sharing else ''}"


def _null(unit: str, reason: str) -> Limit:
    return Limit(value=None, unit=unit, tolerance=TOLERANCE, reason=reason)


def _clock(metrics: Mapping[str, object]) -> Factor | Unknown:
    hertz = metrics.get("clock_hertz")
    if not isinstance(hertz, int | float) or hertz <= 0:
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
    row = found.microarchitecture
    if workload in LIBRARY_WORKLOADS:
        factor = library_operations_per_cycle(row, identity.flags, params)
    else:
        factor = operations_per_cycle(row, Kernel.of(workload, params, row))
    if isinstance(factor, Unknown):
        return factor
    return factor.model_copy(update={"source": f"{found.how}. {factor.source}"})


def library_operations_per_cycle(
    row: Microarchitecture, flags: frozenset[str], params: Mapping[str, object]
) -> Factor | Unknown:
    """Return the operations per cycle and core of the widest FMA that the CPU has: no library is
    faster.

    The data type is `params["dtype"]`, or fp64 without one (LINPACK has no other).
    """
    dtype = str(params.get("dtype", "fp64"))
    isa = _widest_fma(row.architecture, flags)
    if isa is None:
        return Unknown(f"{row.title}: the CPU shows no FMA instructions")
    factor = operations_per_cycle(row, Kernel("fma", dtype, isa, row.architecture))
    if isinstance(factor, Unknown):
        return factor
    source = f"the FMA peak of {isa}, the widest this CPU has. {factor.source}"
    return factor.model_copy(update={"source": source})


def _widest_fma(architecture: str, flags: frozenset[str]) -> str | None:
    if architecture == ARM:
        return "neon" if "asimd" in flags else None
    return next((isa for needed, isa in FMA_FLAGS if needed <= flags), None)


def operations_per_cycle(row: Microarchitecture, kernel: Kernel) -> Factor | Unknown:
    """Return the operations per cycle and core of a kernel on a micro-architecture.

    A kernel of one instruction class takes its rate from the table. A sequence of several classes
    is limited by the ports that they share.
    """
    instructions = sequence(kernel)
    if isinstance(instructions, Unknown):
        return Unknown(f"{row.title}: {instructions.reason}")
    entries = _entries(row, kernel, instructions)
    if isinstance(entries, Unknown):
        return entries
    single = len(instructions.steps) == 1 and instructions.steps[0].count == 1
    rate = entries[0].rate(*_cell(kernel, instructions.steps[0])) if single else None
    if rate is not None:
        pace = _rate_in_words(rate, instructions.steps[0], kernel)
        return _factor(row, kernel, instructions, rate, pace, entries[0].sources)
    return _port_bound(row, kernel, instructions, entries)


def _cell(kernel: Kernel, step: Step) -> tuple[Width, str]:
    """Return the place of a step in the table: operand width and data type."""
    return step.width or kernel.width, step.dtype or kernel.dtype


def _entries(
    row: Microarchitecture, kernel: Kernel, instructions: Sequence
) -> list[Instruction] | Unknown:
    """Return the table's entry of every step."""
    found: list[Instruction] = []
    for step in instructions.steps:
        entry = row.instruction(step.instruction, *_cell(kernel, step))
        if isinstance(entry, Unknown):
            return entry
        found.append(entry)
    return found


def _port_bound(
    row: Microarchitecture, kernel: Kernel, instructions: Sequence, entries: list[Instruction]
) -> Factor | Unknown:
    names = {step.instruction for step in instructions.steps}
    conflict = row.conflict(names, kernel.width, kernel.dtype)
    if conflict:
        return conflict
    usages: list[Usage] = []
    for step, entry in zip(instructions.steps, entries, strict=True):
        usage = entry.usage(*_cell(kernel, step))
        if usage is None:
            return _no_ports(row, kernel, step, entry)
        usages.append(usage)
    if row.front_end is None:
        return Unknown(f"{row.title}: no source in the table for the width of the front end")
    repeated = [
        usage
        for step, usage in zip(instructions.steps, usages, strict=True)
        for _ in range(step.count)
    ]
    least = bound(repeated, row.front_end.issue_width)
    sources = [source for entry in entries for source in entry.sources]
    if least.of_front_end:
        sources += row.front_end.sources
    return _factor(
        row,
        kernel,
        instructions,
        float(1 / least.cycles),
        _bound_in_words(instructions, usages, kernel, least),
        tuple(dict.fromkeys(sources)),
    )


def _no_ports(row: Microarchitecture, kernel: Kernel, step: Step, entry: Instruction) -> Unknown:
    reason = entry.unknown or "no source in the table for the ports of this mix"
    return Unknown(f"{row.title}, {step.instruction} {kernel.isa}: {reason}")


def _factor(
    row: Microarchitecture,
    kernel: Kernel,
    instructions: Sequence,
    per_cycle: float,
    pace: str,
    sources: Iterable[str],
) -> Factor:
    lanes = f"{kernel.lanes} {'lane' if kernel.lanes == 1 else 'lanes'} of {kernel.dtype}"
    note = [f"note: {row.note}"] if row.note else []
    return Factor(
        name="operations_per_cycle",
        value=per_cycle * kernel.lanes * instructions.operations_per_lane,
        unit="operation/cycle",
        source=(
            f"{row.title}: {pace} × {lanes} × {instructions.operations_per_lane} per lane "
            f"({'; '.join((*sources, *note))})"
        ),
    )


def _rate_in_words(rate: float, step: Step, kernel: Kernel) -> str:
    """Return a text such as `2 fp_fma (avx512) a cycle`."""
    if rate >= 1:
        return f"{rate:g} {step.instruction} ({kernel.isa}) a cycle"
    return f"1 {step.instruction} ({kernel.isa}) every {1 / rate:g} cycles"


def _bound_in_words(
    instructions: Sequence, usages: Iterable[Usage], kernel: Kernel, least: Bound
) -> str:
    """Return a text such as `1 int_mul (2 µops on p05) + 1 int_add (1 µop on p05) with avx512 every
    1.5 cycles, …`."""
    parts = [
        f"{step.count} {step.instruction} ({in_words(usage)}{' each' if step.count > 1 else ''})"
        for step, usage in zip(instructions.steps, usages, strict=True)
    ]
    pace = f"{float(least.cycles):.4g} {'cycle' if least.cycles == 1 else 'cycles'}"
    return f"{' + '.join(parts)} with {kernel.isa} every {pace}, as {least.because}:"
