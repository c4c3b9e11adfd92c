"""How often does `hostbench fleet pairs` name a slow host, uplink or link, rightly and wrongly?

usage: python -m benchmarks.fleet.pairs [--short | --readme]

Simulates networks of 64 hosts in 8 racks. Sound hosts and uplinks differ by 1 %. Repeated
measurements differ as real figures of this project do: each simulated one has the deviation of a
real figure, chosen at random, from the middle of its own series (NOISES names the files).

- slow: three hosts and two uplinks are a tenth to three tenths slower. Eight random rounds are
  measured, then what `fleet pairs` says to measure next, until three looks or a fifth of the pairs.
- sound: the same with no slow host or uplink, so every one that is called slow is wrong.
- slowest part: slow, but a pair is as slow as its slowest part alone; the model expects that the
  parts multiply.
- links: five single links are slow as well. Every pair is measured once, then suspects again.

Writes results/amd/pairs.csv, a row for each network, and prints the table of README; --readme
writes it there from that file. Takes two minutes on one CPU and needs no quiet host. --short
simulates a tenth of the networks and writes nothing.
"""

import csv
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decisions.fresh import rows_of
from benchmarks.decisions.page import written
from benchmarks.decisions.resampled import Tally
from benchmarks.programs import ROOT
from benchmarks.tables import README
from hostbench.decisions.pair_rounds import matchings, pairs_of, tournament
from hostbench.decisions.pairs import LOOKS, Measurement, pair_matrix
from hostbench.model.pairs import PairMatrix, PairWord
from tests.unit.pair_documents import Network

RESULTS = Path(__file__).parent / "results/amd/pairs.csv"
NETWORKS, NETWORKS_LINKS = 100, 20
ROUNDS, SHARE_MOST = 8, 0.20
HOSTS, UPLINKS, LINKS = 3, 2, 5
# A tournament's suspects are measured again so often at most: hosts first, then links.
LOOKS_LINKS = 8
DESIGNS = ("slow", "sound", "slowest part", "links")
FIELDS = (
    *("noise", "deviation", "design", "seed", "hosts", "hosts_found", "uplinks", "uplinks_found"),
    *("links", "links_found", "wrong", "measurements", "share"),
)


def _streams(row: dict[str, str]) -> bool:
    """Whether a row of against_iperf3.csv is of TCP over veth on the Xeon: its entries 9 to 14."""
    return 9 <= int(row["entry"]) <= 14


def _two_streams(row: dict[str, str]) -> bool:
    return row["entry"] == "2"


def _quiet_job(workload: str) -> Callable[[dict[str, str]], bool]:
    def is_one(row: dict[str, str]) -> bool:
        return (
            row["workload"] == workload
            and row["plant"] == "none"
            and row["verdict"] in ("clean", "noisy")
        )

    return is_one


@dataclass(frozen=True)
class Noise:
    """Real figures: the file, its rows that count, the column of the figure, and the column whose
    values tell series from one another."""

    title: str
    file: str
    counts: Callable[[dict[str, str]], bool]
    figure: str
    series: str

    def deviations(self) -> list[float]:
        """Return how far each figure is off the mean of its series: logarithms."""
        series: dict[str, list[float]] = {}
        for row in rows_of(ROOT / self.file):
            if self.counts(row):
                series.setdefault(row[self.series], []).append(math.log(float(row[self.figure])))
        return [
            (log - statistics.fmean(logs)) * math.sqrt(len(logs) / (len(logs) - 1))
            for logs in series.values()
            for log in logs
        ]


NOISES = (
    Noise(
        "TCP streams between two namespaces, repeated at once (Xeon)",
        "benchmarks/net/results/intel/against_iperf3.csv",
        _streams,
        "ours",
        "entry",
    ),
    Noise(
        "two TCP streams over the loopback, repeated at once (EPYC)",
        "benchmarks/net/results/amd/against_iperf3.csv",
        _two_streams,
        "ours",
        "entry",
    ),
    Noise(
        "TCP round trips in jobs over half a day (EPYC)",
        "benchmarks/trust/results/amd/jobs.csv",
        _quiet_job("net.tcp_rr"),
        "value",
        "workload",
    ),
    Noise(
        "a TCP stream in jobs over half a day (EPYC)",
        "benchmarks/trust/results/amd/jobs.csv",
        _quiet_job("net.tcp_stream"),
        "value",
        "workload",
    ),
)


def sampled(network: Network, seed: int) -> tuple[PairMatrix, int]:
    """Measure random rounds, then what is suspect, with at most SHARE_MOST of the pairs."""
    found = [
        one
        for pairs in matchings(network.nodes, ROUNDS, network.racks, seed)
        for one in network.measured(pairs)
    ]
    most = int(SHARE_MOST * pairs_of(len(network.nodes)))
    matrix = pair_matrix(found, network.racks, seed=seed)
    for _ in range(LOOKS - 1):
        if not any(one.word is PairWord.SUSPECT for one in (*matrix.hosts, *matrix.uplinks)):
            break
        found += _affordable(network, matrix, most - len(found))
        matrix = pair_matrix(found, network.racks, seed=seed)
    return matrix, len(found)


def _affordable(network: Network, matrix: PairMatrix, most: int) -> list[Measurement]:
    """Measure the next rounds, as many whole ones as fit."""
    found: list[Measurement] = []
    for one in matrix.next_rounds:
        if len(found) + len(one.pairs) > most:
            break
        found += network.measured(one.pairs)
    return found


def every_link(network: Network, seed: int) -> tuple[PairMatrix, int]:
    """Measure all pairs once, then what is suspect."""
    found = [one for pairs in tournament(network.nodes) for one in network.measured(pairs)]
    matrix = pair_matrix(found, network.racks, seed=seed)
    for _ in range(LOOKS_LINKS):
        if not matrix.next_rounds:
            break
        for one in matrix.next_rounds:
            found += network.measured(one.pairs)
        matrix = pair_matrix(found, network.racks, seed=seed)
    return matrix, len(found)


def measured(part: int) -> Iterator[dict[str, object]]:
    """Yield a row for each network, with their number divided by `part`."""
    for noise in NOISES:
        deviations = noise.deviations()
        for design in DESIGNS:
            count = (NETWORKS_LINKS if design == "links" else NETWORKS) // part
            for seed in range(max(1, count)):
                network = Network(
                    random.Random(f"{noise.title} {design} {seed}"),  # noqa: S311 - repeatable
                    noise=deviations,
                    slowest_part=design == "slowest part",
                )
                if design != "sound":
                    network.spoil(HOSTS, UPLINKS, LINKS if design == "links" else 0)
                judge = every_link if design == "links" else sampled
                row = _row(network, *judge(network, seed))
                yield {
                    "noise": noise.title,
                    "deviation": f"{statistics.pstdev(deviations):.4f}",
                    "design": design,
                    "seed": seed,
                } | row


def _row(network: Network, matrix: PairMatrix, measurements: int) -> dict[str, object]:
    slow = PairWord.SLOW
    hosts = {one.host for one in matrix.hosts if one.word is slow}
    uplinks = {one.rack for one in matrix.uplinks if one.word is slow}
    links = {(one.a, one.b) for one in matrix.links if one.word is slow}
    pairs = (
        (hosts, set(network.hosts)),
        (uplinks, set(network.uplinks)),
        (links, set(network.links)),
    )
    return {
        "hosts": len(network.hosts),
        "hosts_found": len(hosts & set(network.hosts)),
        "uplinks": len(network.uplinks),
        "uplinks_found": len(uplinks & set(network.uplinks)),
        "links": len(network.links),
        "links_found": len(links & set(network.links)),
        "wrong": sum(len(found - real) for found, real in pairs),
        "measurements": measurements,
        "share": f"{measurements / pairs_of(len(network.nodes)):.4f}",
    }


Row = dict[str, str]


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the table of README as lines of Markdown."""
    yield (
        "| measurements differ as | deviation | what is slow | hosts found | uplinks found "
        "| links found | all found, at most 1 wrong | 95 % interval | networks with a wrong one "
        "| 95 % interval | share of the pairs, median and most |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["noise"], row["design"]), []).append(row)
    for (noise, design), own in groups.items():
        yield f"| {' | '.join(_cells(noise, design, own))} |"


def _cells(noise: str, design: str, rows: list[Row]) -> Iterator[str]:
    yield from (noise, f"{100 * float(rows[0]['deviation']):.1f} %", WHAT[design])
    for kind in ("hosts", "uplinks", "links"):
        real = sum(int(row[kind]) for row in rows)
        found = sum(int(row[f"{kind}_found"]) for row in rows)
        yield f"{found} of {real}" if real else "–"
    right, wrong = Tally(), Tally()
    for row in rows:
        missed = sum(int(row[k]) - int(row[f"{k}_found"]) for k in ("hosts", "uplinks", "links"))
        right.count(missed == 0 and int(row["wrong"]) <= 1)
        wrong.count(int(row["wrong"]) > 0)
    yield "– | –" if design == "sound" else str(right)
    yield str(wrong)
    shares = [float(row["share"]) for row in rows]
    yield f"{100 * statistics.median(shares):.1f}, {100 * max(shares):.1f} %"


WHAT = {
    "slow": "3 hosts, 2 uplinks",
    "sound": "nothing",
    "slowest part": "3 hosts, 2 uplinks; a pair is as slow as its slowest part",
    "links": "3 hosts, 2 uplinks, 5 links; every pair once, then suspects",
}


def main() -> None:
    """Simulate, or write the table of what was simulated."""
    if "--readme" not in sys.argv:
        is_short = "--short" in sys.argv
        rows = list(measured(10 if is_short else 1))
        if is_short:
            print("\n".join(table([{k: str(v) for k, v in row.items()} for row in rows])))
            return
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    lines = list(table(rows_of(RESULTS)))
    if "--readme" in sys.argv:
        README.write_text(written(README.read_text(), {"pairs": lines}, "fleet"))
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
