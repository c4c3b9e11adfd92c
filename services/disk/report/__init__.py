"""The report on disks: throughput, operations a second, latency, commits, evidence."""

from collections.abc import Iterator, Sequence

from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.cases import name_of, number
from hostbench.report.content import Block, Code, Paragraph, Part
from hostbench.report.figures import by_workload, workload_table
from hostbench.report.grouping import THREADS
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import best_of_each, peer_part, preferred
from services.disk.params import BLOCK, DEPTH
from services.disk.report.behaviour import behaviour_part
from services.disk.report.cases import COMMITS, RANDOM, SEQUENTIAL, is_cached
from services.disk.report.evidence import cautions, evidence_part
from services.disk.report.latency import commits, percentiles
from services.disk.report.naive import naive_evidence
from services.disk.report.sweeps import operations, throughput

INTRODUCTION = Paragraph(
    "hostbench measured everything in a file of incompressible data in one directory, whose "
    "blocks it had written before. The cache mode is a part of every figure: direct bypasses the "
    "page cache; buffered reads began with an empty page cache; buffered+fsync_end, +dsync and "
    "+sync wait for the device. 1 GB/s is 10⁹ bytes a second, 1 MiB of a block or a file 2²⁰ "
    "bytes. Figures cover the whole timed region, since operations that wait for a device cannot "
    "be divided into slices."
)
SMALL_BLOCK = 4096


def _place(host: HostInventory) -> Iterator[Paragraph]:
    """Yield what the file lay on, as far as it is known."""
    scratch = host.scratch
    if scratch is None:
        return
    found = scratch.device
    disks = ", ".join(
        f"{disk.name} ({disk.transport or 'of an unknown kind'})"
        for disk in (found.disks if found else ())
    )
    on = f"on {disks}" if disks else f"on a device that is not known: {scratch.device_reason}"
    system = scratch.file_system or "a file system that is not known"
    yield Paragraph(("The file was in ", Code(scratch.directory), f", {system} {on}."))


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
    headline = _headline(cases)
    of = len(document.cases)
    timed = [case for case in cases if name_of(case) in (*SEQUENTIAL, *RANDOM)]
    parts = [
        Part("Throughput", tuple(throughput(_of(cases, SEQUENTIAL), of=of))),
        Part("Operations a second", tuple(operations(_of(cases, RANDOM), of=of))),
        Part("Latency", tuple(percentiles(timed, headline, of=of))),
        Part("Commits", tuple(commits(_of(cases, (COMMITS,)), of=of))),
        Part("Other workloads", tuple(_others(cases, of=of))),
        behaviour_part(cases),
        evidence_part(cases, of=of),
    ]
    return SubsystemReport(
        title="Disk",
        headline=headline,
        blocks=(
            INTRODUCTION,
            *_place(document.host),
            *cautions(cases),
            *(part for part in parts if part.blocks),
            *peer_part(cases),
        ),
    )


def naive(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """See hostbench.report.subsystem.HasReport."""
    yield from naive_evidence(cases, of=len(document.cases))


def _of(cases: Sequence[CaseResult], names: Sequence[str]) -> list[CaseResult]:
    return [case for case in cases if name_of(case) in names]


def _others(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield tables of workloads that a later program may add."""
    known = (*SEQUENTIAL, *RANDOM, COMMITS)
    rest = [case for case in cases if name_of(case) not in known]
    for workload, found in by_workload(rest).items():
        yield workload_table(workload, found, of=of)


# ---- summary ----


def _headline(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return, for each workload, the best case that is the disk's own figure. For random access
    these are cases with blocks of 4 KiB, and in addition the best with one operation at a time."""
    random = preferred(_of(cases, RANDOM), lambda case: number(case, BLOCK) == SMALL_BLOCK)
    found = (
        *best_of_each(_uncached(_of(cases, SEQUENTIAL))),
        *best_of_each(_uncached(preferred(random, _is_one_at_a_time))),
        *best_of_each(_uncached(random)),
        *best_of_each(_uncached(_of(cases, (COMMITS,)))),
    )
    return tuple({case.case: case for case in found}.values())


def _is_one_at_a_time(case: CaseResult) -> bool:
    return number(case, DEPTH) == 1 and number(case, THREADS) == 1


def _uncached(cases: Sequence[CaseResult]) -> list[CaseResult]:
    return preferred(cases, lambda case: not is_cached(case))
