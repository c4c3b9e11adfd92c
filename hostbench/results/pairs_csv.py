"""The network between hosts as CSV: a row for each host, uplink and link."""

import csv
from collections.abc import Iterator
from typing import TextIO

from hostbench.model.pairs import Judged, PairMatrix

FIELDS = ("kind", "name", "other", "rack", "locks", "measured", "value", "ratio", "chance", "word")


HOST, UPLINK, LINK = "host", "uplink", "link"


def write_pairs_csv(matrix: PairMatrix, stream: TextIO) -> None:
    """Write the rows. `value` is the median of a link in the metric's base unit; `ratio` is how
    good it is beside the others; what is unknown is empty."""
    table = csv.DictWriter(stream, FIELDS, lineterminator="\n")
    table.writeheader()
    table.writerows(pair_rows(matrix))


def pair_rows(matrix: PairMatrix) -> Iterator[dict[str, object]]:
    """Yield the rows: hosts, uplinks, links."""
    for host in matrix.hosts:
        place = {"kind": HOST, "name": host.host, "rack": host.rack}
        yield place | {"locks": " ".join(host.locks)} | _shared(host)
    for uplink in matrix.uplinks:
        yield {"kind": UPLINK, "name": uplink.rack} | _shared(uplink)
    for link in matrix.links:
        own = {"kind": LINK, "name": link.a, "other": link.b, "value": link.value}
        yield own | _shared(link)


def _shared(one: Judged) -> dict[str, object]:
    return {
        "measured": one.measured,
        "ratio": one.ratio,
        "chance": one.chance,
        "word": one.word.value,
    }
