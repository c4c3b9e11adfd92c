"""What the report says of GPUs: rates, bandwidths, latencies, and what the card was doing."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.cases import WORKLOAD, name_of, requested
from hostbench.report.content import Block, CurveAxis, Paragraph, Part
from hostbench.report.curves import curve_charts
from hostbench.report.figures import by_workload, figures_table, workload_table
from hostbench.report.grouping import Layout, charts
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import best_of_each, peer_part, preferred
from hostbench.report.sweeps import along_param
from services.gpu.report.cases import (
    BACKEND,
    CACHED_IN,
    CHASE,
    DEVICE,
    DIRECTION,
    DTYPE,
    GEMM,
    HOST_MEMORY,
    INSTRUCTION,
    KNOWN,
    LAUNCHES,
    MEMORY,
    MODE,
    PATH,
    PEER_TO_PEER,
    SIZE,
    TENSOR,
    TRANSFERS,
    VECTOR,
    of_workloads,
)
from services.gpu.report.evidence import card, cautions, devices, nothing_ran

INTRODUCTION = Paragraph(
    "A rate is work divided by the time that the device took by its own clock: the median over "
    "windows of at least 100 ms. A multiplication with an addition counts as two operations. The "
    "limit of a rate is that of the highest clock; the last table also has the share of the limit "
    "at the clock during the trial. 1 GB/s is 10⁹ bytes a second."
)
VECTOR_RATES = Paragraph(
    "Chains of dependent operations in registers, enough of them to keep every multiprocessor "
    "busy. The program knows each result and checks it."
)
TENSOR_RATES = Paragraph(
    "The rate of the tensor cores' pipes on random operands that need no load: the most that any "
    "program can reach. It is not the rate of a matrix product."
)
GEMM_RATES = Paragraph(
    "A whole product of two matrices by the vendor's library: the rate that programs get. It does "
    "not measure the pipes alone, so it has a part of its own."
)
BANDWIDTH = Paragraph(
    "Arrays that fit into no cache; each element is accessed once. copy counts two bytes for each "
    "byte of the array, triad three. The program checks what it wrote."
)
ACCESSES = Paragraph(
    "The time of one access that must wait for the one before it, over the size of the working "
    "set, in an unpredictable order. Each step of the curve is the size of a cache."
)
COPIES = Paragraph(
    "The device itself copies pinned memory. The driver first copies pageable memory, so the host "
    "times those transfers. For both directions at once, the bytes of both count."
)
AXES = (
    WORKLOAD,
    DTYPE,
    INSTRUCTION,
    HOST_MEMORY,
    MODE,
    PATH,
    DIRECTION,
    CACHED_IN,
    SIZE,
    DEVICE,
    BACKEND,
)
BARS = Layout(axes=AXES, first=(WORKLOAD, DEVICE, BACKEND))


def _beside(first: str) -> Layout:
    """The same with the values of one parameter side by side within each workload."""
    axes = (first, *(name for name in AXES if name != first))
    return Layout(axes=axes, first=BARS.first)


BY_TYPE, BY_HOST_MEMORY = _beside(DTYPE), _beside(HOST_MEMORY)
CURVES = Layout(axes=(DEVICE, BACKEND))


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
    of = len(document.cases)
    parts = [
        _part("Vector units", cases, VECTOR, VECTOR_RATES, BY_TYPE, of=of),
        _part("Tensor cores", cases, (TENSOR,), TENSOR_RATES, BY_TYPE, of=of),
        _part("Matrix products", cases, (GEMM,), GEMM_RATES, BY_TYPE, of=of),
        _part("Device memory", cases, MEMORY, BANDWIDTH, BARS, of=of),
        Part("Latency of device memory", tuple(_chase(of_workloads(cases, (CHASE,)), of=of))),
        _part("Between host and device", cases, TRANSFERS, COPIES, BY_HOST_MEMORY, of=of),
        _part("Between devices", cases, (PEER_TO_PEER,), None, BARS, of=of),
        _part("Launches", cases, (LAUNCHES,), None, BARS, of=of),
        Part("Other workloads", tuple(_others(cases, of=of))),
        Part("What the card was doing", tuple(card(cases, of=of))),
        Part("Devices", tuple(devices(cases))),
    ]
    return SubsystemReport(
        title="GPU",
        headline=best_of_each(preferred(cases, _by_us), DTYPE, HOST_MEMORY),
        blocks=(
            INTRODUCTION,
            *nothing_ran(cases),
            *cautions(cases),
            *(part for part in parts if part.blocks),
            *peer_part(cases),
        ),
    )


def _by_us(case: CaseResult) -> bool:
    """The driver's own copy from device to device is no headline of ours."""
    return case.params.get(PATH) != "driver"


def _part(
    title: str,
    cases: Sequence[CaseResult],
    workloads: Sequence[str],
    introduction: Paragraph | None,
    layout: Layout,
    *,
    of: int,
) -> Part:
    """Bars and a table of these workloads; empty where the document has none of them."""
    found = of_workloads(cases, workloads)
    if not found:
        return Part(title, ())
    blocks: list[Block] = [introduction] if introduction else []
    blocks += charts([(case, requested(case)) for case in found], layout)
    blocks.append(figures_table(found, f"Figures: {title[0].lower()}{title[1:]}", of=of))
    return Part(title, tuple(blocks))


def _chase(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    if not cases:
        return
    yield ACCESSES
    yield from curve_charts(
        "Access time over the working set",
        [(case, requested(case)) for case in cases],
        CURVES,
        along_param(cases, SIZE),
        CurveAxis("time of an access", "s", logarithmic=True),
    )
    yield workload_table("gpu.pointer_chase", cases, of=of)


def _others(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """What a later program may add."""
    rest = [case for case in cases if name_of(case) not in KNOWN]
    for workload, found in by_workload(rest).items():
        yield workload_table(workload, found, of=of)
