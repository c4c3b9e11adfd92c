"""A campaign's answer as CSV: one row for each figure of each host, and for each case without one.
Base units, full precision."""

import csv
from typing import TextIO

from hostbench.model.fleet import FleetCheck, FleetHost

FIGURE = ("value", "low", "high", "expected", "usual", "hosts", "p", "lost_ratio", "share_of_limit")
COLUMNS = (
    *("host", "host_word", "host_is_sure", "host_p", "population", "jobs", "differs_in"),
    *("case", "title", "workload", "unit", "direction", "is_headline", "word"),
    *FIGURE,
    *("verdict", "reason", "culprit"),
)
MISSING = "missing"


def write_fleet_csv(fleet: FleetCheck, stream: TextIO) -> None:
    """Write all hosts, the worst first, then the nodes without a document."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for host in fleet.hosts:
        head = _head(host)
        for one in host.figures:
            row = [*head, one.case, one.title, one.workload, one.unit, one.direction]
            row += [one.is_headline, one.word, *(getattr(one, name) for name in FIGURE)]
            writer.writerow([*row, None, None, None])
        for lost in host.lost:
            case = fleet.cases[lost.case]
            row = [*head, lost.case, lost.title, case.workload, case.unit, case.direction]
            row += [case.is_headline, MISSING, *(None for _ in FIGURE)]
            writer.writerow([*row, lost.verdict, lost.reason, lost.culprit])
    for node in fleet.missing:
        writer.writerow([node, MISSING, *(None for _ in COLUMNS[2:])])


def _head(host: FleetHost) -> list[object]:
    facts = "; ".join(f"{one.fact}={one.value}" for one in host.facts)
    jobs = " ".join(host.jobs)
    return [host.host, host.word, host.is_sure, host.p, host.population, jobs, facts]
