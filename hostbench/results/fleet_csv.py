"""A campaign's answer as CSV: one row for each figure of each host, and for each case without one.
Base units, full precision.

Rows with `network` are of the network between the hosts: `host` is a host, or the first of a link
with `other`; an uplink has its `rack` alone. Their `p` is the chance of it alone.
"""

import csv
from collections.abc import Mapping
from typing import TextIO

from hostbench.model.fleet import FleetCheck, FleetHost
from hostbench.model.pairs import PairMatrix
from hostbench.results.pairs_csv import UPLINK, pair_rows

CASE = ("case", "title", "workload", "unit", "direction", "is_headline")
FIGURE = ("value", "low", "high", "expected", "usual", "hosts", "p", "lost_ratio", "share_of_limit")
COLUMNS = (
    *("host", "host_word", "host_is_sure", "host_p", "population", "jobs", "locks", "differs_in"),
    *CASE,
    "word",
    *FIGURE,
    *("verdict", "reason", "culprit"),
    *("network", "other", "rack", "measured", "ratio"),
)
NETWORK = ("word", "value", "other", "rack", "locks", "measured", "ratio")
MISSING, REFUSED = "missing", "left out"


def write_fleet_csv(fleet: FleetCheck, stream: TextIO) -> None:
    """Write all hosts, the worst first, then the nodes without a document, the documents that were
    left out, and the network."""
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for host in fleet.hosts:
        head = _head(host)
        for one in host.figures:
            writer.writerow(head | {name: getattr(one, name) for name in (*CASE, "word", *FIGURE)})
        for lost in host.lost:
            case = fleet.cases[lost.case]
            own = {"case": lost.case, "title": lost.title, "word": MISSING}
            own |= {name: getattr(case, name) for name in CASE if name not in own}
            own |= {name: getattr(lost, name) for name in ("verdict", "reason", "culprit")}
            writer.writerow(head | own)
    for node in fleet.missing:
        writer.writerow({"host": node, "host_word": MISSING})
    for why in fleet.refused:
        writer.writerow({"host_word": REFUSED, "reason": why})
    if fleet.pairs is not None:
        for row in pair_rows(fleet.pairs):
            writer.writerow(_as_figure(row, fleet.pairs))


def _as_figure(row: Mapping[str, object], matrix: PairMatrix) -> dict[str, object]:
    """Return a row of the network in the columns of figures."""
    same = {name: row.get(name) for name in NETWORK}
    place = "rack" if row["kind"] == UPLINK else "host"
    return same | {
        "network": row["kind"],
        place: row["name"],
        "p": row["chance"],
        "title": matrix.title,
        "unit": matrix.unit,
        "direction": matrix.direction,
    }


def _head(host: FleetHost) -> dict[str, object]:
    return {
        "host": host.host,
        "host_word": host.word,
        "host_is_sure": host.is_sure,
        "host_p": host.p,
        "population": host.population,
        "jobs": " ".join(host.jobs),
        "locks": " ".join(host.locks),
        "differs_in": "; ".join(f"{one.fact}={one.value}" for one in host.facts),
    }
