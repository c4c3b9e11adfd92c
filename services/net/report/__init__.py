"""The report on the network: throughput, loss, round trips, both ends, the path."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.cases import median, name_of, number
from hostbench.report.content import Block, Paragraph, Part
from hostbench.report.figures import by_workload, workload_table
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import best_of_each, peer_part, preferred
from services.net.report.cases import (
    BLOCK,
    CONNECTIONS,
    COUNT,
    KNOWN,
    ROUND_TRIPS,
    STREAMS,
    is_loaded,
    lost,
    of_workloads,
    target_of,
)
from services.net.report.ends import cautions, cpu, evidence, in_force, path
from services.net.report.naive import counted_and_arrived
from services.net.report.round_trips import connections, round_trips
from services.net.report.throughput import loss, throughput

INTRODUCTION = Paragraph(
    "The near end is the program that ran the trial. The far end is a second process, on this "
    "host (loopback) or on another one (far host). 1 GB/s is 10⁹ bytes of payload a second, which "
    "is 8 Gbit/s; 1 KiB of a block is 2¹⁰ bytes. Figures cover the whole timed region, since work "
    "that waits for a network cannot be divided into slices. Sending and receiving are as seen "
    "from the near end."
)
# If more datagrams than this were lost, a rate is not what the path carries.
LOST_MOST = 0.02


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
    headline = _headline(cases)
    of = len(document.cases)
    streams = of_workloads(cases, STREAMS)
    parts = [
        Part("Throughput", tuple(throughput(streams, of=of))),
        Part("Loss", tuple(loss(streams, of=of))),
        Part("Round trips", tuple(round_trips(of_workloads(cases, ROUND_TRIPS), headline, of=of))),
        Part("Connections", tuple(connections(of_workloads(cases, (CONNECTIONS,)), of=of))),
        Part("Other workloads", tuple(_others(cases, of=of))),
        Part("CPU time at both ends", tuple(cpu(cases, headline, of=of))),
        Part("What was in force", tuple(in_force(cases, of=of))),
        Part("The path", tuple(path(cases))),
        Part("Evidence", tuple(evidence(cases, of=of))),
    ]
    return SubsystemReport(
        title="Network",
        headline=headline,
        blocks=(
            INTRODUCTION,
            *cautions(cases),
            *(part for part in parts if part.blocks),
            *peer_part(cases),
        ),
    )


def naive(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """See hostbench.report.subsystem.HasReport."""
    yield from counted_and_arrived(cases, of=len(document.cases))


def _others(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield tables of workloads that a later program may add."""
    rest = [case for case in cases if name_of(case) not in KNOWN]
    for workload, found in by_workload(rest).items():
        yield workload_table(workload, found, of=of)


# ---- summary ----


def _headline(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return, for each workload, the best case to each target."""
    found: list[CaseResult] = []
    for target in dict.fromkeys(target_of(case) for case in cases):
        there = [case for case in cases if target_of(case) == target]
        for streams in by_workload(of_workloads(there, STREAMS)).values():
            found += _best_stream(streams)
        found += best_of_each(_plain_trips(of_workloads(there, ROUND_TRIPS)))
        found += best_of_each(of_workloads(there, (CONNECTIONS,)))
    return tuple(found)


def _best_stream(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the case with the most that arrived, or one that loses little if that is not far
    below."""
    best = best_of_each(cases)
    little = best_of_each([case for case in cases if lost(case) <= LOST_MOST])
    return little if little and _goodput(little) >= _goodput(best) / 2 else best


def _goodput(cases: Sequence[CaseResult]) -> float:
    return max((median(case, case.primary) or 0.0 for case in cases), default=0.0)


def _plain_trips(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the cases without load, with one stream, and with the smallest block."""
    found = preferred(cases, lambda case: not is_loaded(case))
    found = preferred(found, lambda case: number(case, COUNT) == 1)
    least = min((number(case, BLOCK) or 0.0 for case in found), default=0.0)
    return preferred(found, lambda case: number(case, BLOCK) == least)
