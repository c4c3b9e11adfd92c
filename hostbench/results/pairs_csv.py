"""The network between hosts as CSV: a row for each host, uplink and link."""

import csv
from typing import TextIO

from hostbench.model.pairs import Judged, PairMatrix

FIELDS = ("kind", "name", "other", "rack", "measured", "value", "ratio", "chance", "word")


def write_pairs_csv(matrix: PairMatrix, stream: TextIO) -> None:
    """Write the rows. `value` is the median of a link in the metric's base unit; `ratio` is how
    good it is beside the others; what is unknown is empty."""
    table = csv.DictWriter(stream, FIELDS, lineterminator="\n")
    table.writeheader()
    for host in matrix.hosts:
        table.writerow({"kind": "host", "name": host.host, "rack": host.rack} | _shared(host))
    for uplink in matrix.uplinks:
        table.writerow({"kind": "uplink", "name": uplink.rack} | _shared(uplink))
    for link in matrix.links:
        own = {"kind": "link", "name": link.a, "other": link.b, "value": link.value}
        table.writerow(own | _shared(link))


def _shared(one: Judged) -> dict[str, object]:
    return {
        "measured": one.measured,
        "ratio": one.ratio,
        "chance": one.chance,
        "word": one.word.value,
    }
