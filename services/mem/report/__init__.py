"""The report on memory: bandwidth, latency of data, code, load and NUMA nodes, accesses, blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Paragraph, Part
from hostbench.report.figures import by_workload, workload_table
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import peer_part
from services.mem.params import BLOCK, BLOCK_KERNELS, KERNELS, PATTERN, RANDOM
from services.mem.report import accesses, bandwidth, blocks, jumps, latency, numa
from services.mem.report.summary import (
    best_accesses,
    best_bandwidths,
    heaviest_loads,
    largest_sets,
)
from services.mem.report.values import name_of

INTRODUCTION = Paragraph(
    "Bandwidths are based on a variant of the STREAM benchmark. They count bytes as STREAM does: "
    "for each element of 8 bytes, read and write count 8, copy and scale 16, add and triad 24. "
    "What a cache reads only because the line will be written does not count. 1 GB/s is 10⁹ bytes "
    "a second; 1 MiB of a working set is 2²⁰ bytes. A working set is all arrays of all threads "
    "together. The page mode is a part of every figure: hostbench compares a peer only with cases "
    "of the same page mode."
)


@dataclass(frozen=True)
class _Kind:
    """Cases of one kind: their part of the section, and which of them represent all."""

    title: str
    part: Callable[[Sequence[CaseResult], ResultDocument], Iterator[Block]]
    headline: Callable[[Sequence[CaseResult]], tuple[CaseResult, ...]]


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
    kinds = [(kind, [case for case in cases if _kind(case) is kind]) for kind in _KINDS]
    found = [(kind, of_kind) for kind, of_kind in kinds if of_kind]
    parts = [Part(kind.title, tuple(kind.part(of_kind, document))) for kind, of_kind in found]
    return SubsystemReport(
        title="Memory",
        headline=tuple(case for kind, of_kind in found for case in kind.headline(of_kind)),
        blocks=(INTRODUCTION, *parts, *peer_part(cases)),
    )


def _kind(case: CaseResult) -> _Kind:
    """Return the kind that a case belongs to."""
    name, params = name_of(case), case.params
    if name in KERNELS and params.get(BLOCK) is None and params.get(PATTERN) != RANDOM:
        return _BANDWIDTH
    if name in KERNELS or name in BLOCK_KERNELS:
        return _BLOCKS
    kinds = {
        "pointer_chase": _LATENCY,
        "code_chase": _CODE,
        "loaded_latency": _UNDER_LOAD,
        "random_access": _ACCESSES,
        "numa": _NODES,
    }
    return kinds.get(name, _OTHERS)


def _others(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    for workload, found in by_workload(cases).items():
        yield workload_table(workload, found, of=len(document.cases))


_BANDWIDTH = _Kind("Bandwidth", bandwidth.part, best_bandwidths)
_LATENCY = _Kind("Latency", latency.part, largest_sets)
_CODE = _Kind("Latency of code", jumps.part, jumps.headline)
_UNDER_LOAD = _Kind("Latency under load", latency.part_under_load, heaviest_loads)
_ACCESSES = _Kind("Small random accesses", accesses.part, best_accesses)
_NODES = _Kind("NUMA nodes", numa.part, best_bandwidths)
_BLOCKS = _Kind("Blocks", blocks.part, best_bandwidths)
_OTHERS = _Kind("Other workloads", _others, best_bandwidths)
_KINDS = (_BANDWIDTH, _LATENCY, _CODE, _UNDER_LOAD, _NODES, _ACCESSES, _BLOCKS, _OTHERS)
