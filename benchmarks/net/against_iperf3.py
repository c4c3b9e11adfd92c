"""Throughput of net-bench against iperf3 with the same blocks, streams and CPUs: interleaved pairs,
over the loopback and between two network namespaces.

usage: python -m benchmarks.net.against_iperf3 [PAIRS] (default: 7)
Needs iperf3 3.18 or newer (IPERF3 names its file) and, for the namespaces, root.

Both figures are payload by the receiver's clock. iperf3 has the CPUs that ours has, and one second
of each run of either is left out. What is sent over UDP and lost is no throughput: where more than
is allowed is lost, our rate is lowered until it is not. That holds for the median: a receiver that
the host keeps from its CPU for 20 ms of a second has lost 2 % of it at any rate.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.awake import cpus_awake
from benchmarks.figures import Entry, save
from benchmarks.net.trials import Placement, Way, apart, iperf3, iperf3_version, ways
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

SECONDS = 1
# Named for both: with a system's bbr, rates would be those of its pacing.
CONGESTION = "cubic"
BLOCK_BYTES, DATAGRAM_BYTES = 128 << 10, 1472
LOST_MOST = 0.02
# Looking for our rate: losses come in bursts, so each of several runs must stay well below what is
# allowed; where one does not, this share of the rate is tried next, so many times at most.
PROBES, LOST_SHARE = 5, 0.5
SLOWER, TRIES = 0.93, 8


@dataclass(frozen=True)
class Case:
    """The same transfer for both tools."""

    ours: str
    theirs: tuple[str, ...]
    target: Target
    streams: int = 1
    lost_most: float | None = None

    @property
    def name(self) -> str:
        """For the table."""
        streams = "" if self.streams == 1 else f", {self.streams} streams"
        return self.ours.replace("--", "") + streams


@dataclass(frozen=True)
class Figure:
    """Of one run of either tool: byte/s that arrived, and the share that was lost."""

    bytes_per_second: float
    lost_ratio: float = 0.0


def cases() -> Iterator[Case]:
    """Plain copies, the defaults of both, datagrams by one and by many a call."""
    tcp = f"tcp_stream --congestion {CONGESTION}"
    for streams in (1, 2, 4):
        theirs = ("-C", CONGESTION, "-l", str(BLOCK_BYTES), "-P", str(streams))
        yield Case(f"{tcp} --send-path copy", theirs, Target("≥ 1.0", least=1.0), streams)
    for streams in (1, 2, 4):
        defaults = ("-C", CONGESTION, "-P", str(streams))
        yield Case(tcp, defaults, Target("≥ 1.2", least=1.2), streams)
    datagrams = ("-u", "-b", "0", "-l", str(DATAGRAM_BYTES))
    yield Case("udp_stream --udp-path single", datagrams, Target("≥ 1.0", least=1.0))
    yield Case("udp_stream", datagrams, Target("≥ 8", least=8.0), lost_most=LOST_MOST)


def run_ours(way: Way, case: Case, placement: Placement, rate: float | None) -> Figure:
    """One trial."""
    block = DATAGRAM_BYTES if case.ours.startswith("udp") else BLOCK_BYTES
    command = f"{case.ours} --block-bytes {block} --streams {case.streams} {placement.options}"
    if rate is not None:
        command += f" --rate {rate:.0f}"
    metrics = way.net_bench(f"{command} --duration-s {SECONDS} --warmup-s 1")["end"]["metrics"]
    return Figure(metrics["bytes_per_second"], metrics.get("lost_ratio") or 0.0)


def run_theirs(way: Way, case: Case, placement: Placement) -> Figure:
    """One run."""
    end = iperf3(way, placement, *case.theirs, seconds=SECONDS)
    received = end["sum_received"]
    lost: float = received.get("lost_percent", 0.0) / 100
    return Figure(received["bits_per_second"] / 8, lost)


def sustained_rate(run: Callable[[float | None], Figure], lost_most: float | None) -> float | None:
    """What may be sent without losing more than is allowed, in byte/s; None: whatever goes."""
    if lost_most is None:
        return None
    rate = run(None).bytes_per_second
    for _ in range(TRIES):
        if all(run(rate).lost_ratio <= LOST_SHARE * lost_most for _ in range(PROBES)):
            return rate
        rate *= SLOWER
    return rate


def compare(way: Way, case: Case, pairs: int) -> tuple[Comparison, Entry]:
    """The pairs, and what else is to be known of them."""
    placement = apart(case.streams)
    rate = sustained_rate(lambda at: run_ours(way, case, placement, at), case.lost_most)
    found = interleaved(
        pairs,
        lambda: run_ours(way, case, placement, rate),
        lambda: run_theirs(way, case, placement),
        disk=True,
    )
    comparison = Comparison(
        case.target,
        tuple(ours.bytes_per_second for ours, _ in found),
        tuple(theirs.bytes_per_second for _, theirs in found),
    )
    compared = comparison.entry(
        way=way.name,
        command=f"net-bench {case.ours}",
        streams=case.streams,
        iperf3=" ".join(case.theirs),
        near_cpus=placement.near,
        far_cpus=placement.far,
        rate=rate,
        lost_target=case.lost_most,
    )
    lost = {
        "ours_lost_ratio": [ours.lost_ratio for ours, _ in found],
        "theirs_lost_ratio": [theirs.lost_ratio for _, theirs in found],
    }
    return comparison, Entry(compared.facts, {**compared.columns, **lost})


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    version = iperf3_version()
    print(f"{version}\n")
    lost = "lost: median, most"
    columns = ("way", "case", "ours, Gbit/s", "iperf3", *RATIO_COLUMNS[:-1], lost, "")
    print_header(columns)
    figures = []
    with ways() as found, cpus_awake():
        for way in found:
            for case in cases():
                comparison, entry = compare(way, case, pairs)
                lost_ratios = entry.numbers("ours_lost_ratio")
                most = float("inf") if case.lost_most is None else case.lost_most
                met = comparison.met and median(lost_ratios) <= most
                print_row(
                    [
                        way.name,
                        case.name,
                        f"{median(comparison.ours) * 8e-9:.2f}",
                        f"{median(comparison.theirs) * 8e-9:.2f}",
                        *comparison.cells()[:-1],
                        f"{median(lost_ratios):.1%}, {max(lost_ratios):.1%}",
                        "holds" if met else "**misses**",
                    ]
                )
                figures.append(entry)
                save("net/against_iperf3", figures, version=version)


if __name__ == "__main__":
    main()
