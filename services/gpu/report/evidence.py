"""What stands behind the figures: the devices, what they were doing, what deserves caution."""

from collections.abc import Iterator, Mapping, Sequence

from hostbench.base.units import binary_bytes, full_sentence, plural
from hostbench.model.result import CaseResult
from hostbench.report.cases import caution_blocks, median, row_of, share, shown
from hostbench.report.content import Block, Bullets, Column, Paragraph, RowGroup, Share, Table, Text
from hostbench.report.figures import NOTHING, first_names, folded, primary
from services.gpu.limits import MIG
from services.gpu.report.cases import facts_of

CARD = Paragraph(
    "The clock is that of the multiprocessors while the kernels ran, from the device's own "
    "counters of cycles and nanoseconds if it has them. A card that reaches its power limit or "
    "its temperature limit lowers its clock. Its rate is then below the limit at the highest "
    "clock, but operations per cycle still show whether the kernel used the whole card."
)
# Warnings, and what they mean for a figure; the gravest first.
MEANINGS = {
    "xid": "the driver reported an error of the card (Xid) during the trial: do not trust the "
    "figures",
    "ecc": "the card's memory had errors that could not be corrected: do not trust the figures",
    "not_a_gpu": "the device is not a GPU, such as a CPU behind OpenCL: the figure shows that the "
    "workload works and says nothing about a GPU",
    "clock_throttled": "power, temperature or the supply held the clock down for a part of the "
    "time",
    "in_cache": "a part of the arrays fits into the card's L2 cache, so the figure is partly that "
    "of the cache",
    "short_passes": "passes were short compared with the cost of a launch, which the figure "
    "includes",
    "far_numa_node": "the host's memory was on another NUMA node than the card, so the figure "
    "includes the link between the nodes",
    "ptx": "the driver compiled the kernels for this device, so hostbench has not checked its "
    "instructions",
    "not_run_on_hardware": "no figure of this workload has been confirmed on such a card yet: "
    "compare it with another tool's figure",
}
PART_OF_A_CARD = (
    "a part of a card (MIG): the sensors measure the whole card, so power, energy, temperature "
    "and throttling include its other parts"
)
_CYCLES = "operations_per_cycle"
_COLUMNS = {
    "core_clock_hertz": "clock",
    "power_watts": "power",
    "energy_joules": "energy",
    "temperature_celsius": "hottest",
}
_FACTS = {
    "device_name": "device",
    "device_uuid": "UUID",
    "driver": "driver",
    "compute_capability": "compute capability",
    "compute_units": "multiprocessors",
    "memory_bytes": "memory",
    "pcie": "PCI Express",
    "ecc": "ECC",
}


def cautions(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """What the programs warned of, and what the devices are."""
    yield from caution_blocks(cases, MEANINGS)
    parts = [case.title for case in cases if facts_of(case).get("device_uuid", "").startswith(MIG)]
    if parts:
        text = (
            f"{plural(len(parts), 'case')} ({first_names(parts)}): {full_sentence(PART_OF_A_CARD)}"
        )
        yield Bullets((text,))


def nothing_ran(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Why, where no case has a figure: one sentence a reason."""
    if any(primary(case) for case in cases):
        return
    reasons = dict.fromkeys(reason.text for case in cases for reason in case.reasons)
    for reason in reasons:
        yield Paragraph(full_sentence(reason))


def devices(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """A row each device that a case ran on."""
    found: dict[str, Mapping[str, str]] = {}
    for case in cases:
        facts = facts_of(case)
        if facts:
            found.setdefault(facts.get("device_uuid", facts.get("device_name", "")), facts)
    rows = tuple(
        tuple(_fact_word(name, facts.get(name, "")) for name in _FACTS) for facts in found.values()
    )
    if rows:
        columns = tuple(Column(name) for name in _FACTS.values())
        yield Table("Devices", columns, (RowGroup(None, rows),))


def _fact_word(name: str, value: str) -> str:
    if name == "memory_bytes" and value.isdigit():
        return binary_bytes(int(value))
    return value or NOTHING


def card(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Clock, power and temperature of each case, and its share of the limit at that clock."""
    known = [case for case in cases if row_of([case], *_COLUMNS, _CYCLES)]
    if not known:
        return
    yield CARD
    columns = (
        Column("case"),
        *(Column(name, figures=True) for name in _COLUMNS.values()),
        Column("throttled", figures=True),
        Column("operations a cycle", figures=True),
        Column("of the limit at this clock", figures=True),
    )
    rows = tuple(_card_row(case) for case in known)
    table = Table("What the card was doing", columns, (RowGroup(None, rows),))
    yield folded(table, len(rows), of=of)


def _card_row(case: CaseResult) -> tuple[Text, ...]:
    cycles = case.metrics.get(_CYCLES)
    throttled = share(case, "throttled_ratio")
    return (
        case.title,
        *(shown(case, name) for name in _COLUMNS),
        throttled if median(case, "throttled_ratio") is not None else NOTHING,
        shown(case, _CYCLES),
        Share(cycles.efficiency if cycles else None),
    )
