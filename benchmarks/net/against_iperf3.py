"""Throughput of net-bench against iperf3 under the same conditions: interleaved pairs, over the
loopback and between two network namespaces.

usage: python -m benchmarks.net.against_iperf3 [PAIRS] (default: 7)
Needs iperf3 3.21 or newer (IPERF3 names its file) and, for the namespaces, root.

Both figures are payload by the receiver's clock; what is sent over UDP and lost does not count.
Blocks, streams, congestion control, the way to send and the sizes of the UDP buffers are the same.
Every thread of either tool is pinned to a CPU of its own, in turn, and one second of each run is
left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.arguments import given_number
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
# Set for both tools: with a system that defaults to bbr, its pacing would determine the rates.
CONGESTION = "cubic"
BLOCK_BYTES, DATAGRAM_BYTES = 128 << 10, 1472
# The size of our UDP buffers by default. On a host that allows less, iperf3 ends with an error.
BUFFER_BYTES = 4 << 20
LEVEL = Target("≥ 1.0", least=1.0)


@dataclass(frozen=True)
class Case:
    """The same transfer for both tools."""

    ours: str
    theirs: tuple[str, ...]
    streams: int = 1

    @property
    def name(self) -> str:
        """Return the name of the case in the table."""
        streams = "" if self.streams == 1 else f", {self.streams} streams"
        return self.ours.replace("--", "") + streams


@dataclass(frozen=True)
class Figure:
    """The result of one run of either tool: bytes per second that arrived, and the share that was
    lost."""

    bytes_per_second: float
    lost_ratio: float = 0.0


def cases() -> Iterator[Case]:
    """Yield the cases: plain copies, sendfile, datagrams one at a time and many in a call."""
    for path, zero_copy in (("copy", ()), ("sendfile", ("-Z",))):
        for streams in (1, 2, 4):
            theirs = ("-C", CONGESTION, "-l", str(BLOCK_BYTES), "-P", str(streams), *zero_copy)
            ours = f"tcp_stream --congestion {CONGESTION} --send-path {path}"
            yield Case(ours, theirs, streams=streams)
    datagrams = ("-u", "-b", "0", "-l", str(DATAGRAM_BYTES), "-w", str(BUFFER_BYTES))
    yield Case("udp_stream --udp-path single", datagrams)
    yield Case("udp_stream --udp-path gso", (*datagrams, "--gsro"))


def run_ours(way: Way, case: Case, placement: Placement) -> Figure:
    """Run one trial of net-bench."""
    block = DATAGRAM_BYTES if case.ours.startswith("udp") else BLOCK_BYTES
    command = f"{case.ours} --block-bytes {block} --streams {case.streams} {placement.options}"
    metrics = way.net_bench(f"{command} --duration-s {SECONDS} --warmup-s 1")["end"]["metrics"]
    return Figure(metrics["bytes_per_second"], metrics.get("lost_ratio") or 0.0)


def run_theirs(way: Way, case: Case, placement: Placement) -> Figure:
    """Run iperf3 once."""
    end = iperf3(way, placement, *case.theirs, seconds=SECONDS)
    received = end["sum_received"]
    lost: float = received.get("lost_percent", 0.0) / 100
    return Figure(received["bits_per_second"] / 8, lost)


def compare(way: Way, case: Case, pairs: int) -> tuple[Comparison, Entry]:
    """Measure the pairs. Return their comparison and the entry to save."""
    placement = apart(case.streams)
    found = interleaved(
        pairs,
        lambda: run_ours(way, case, placement),
        lambda: run_theirs(way, case, placement),
        disk=True,
    )
    comparison = Comparison(
        LEVEL,
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
    )
    lost = {
        "ours_lost_ratio": [ours.lost_ratio for ours, _ in found],
        "theirs_lost_ratio": [theirs.lost_ratio for _, theirs in found],
    }
    return comparison, Entry(compared.facts, {**compared.columns, **lost})


def main() -> None:
    pairs = given_number(7)
    version = iperf3_version()
    print(f"{version}\n")
    lost = ("ours lost", "iperf3 lost")
    print_header(("way", "case", "ours, Gbit/s", "iperf3", *RATIO_COLUMNS[:-1], *lost, ""))
    figures = []
    with ways() as found, cpus_awake():
        for way in found:
            for case in cases():
                comparison, entry = compare(way, case, pairs)
                print_row(
                    [
                        way.name,
                        case.name,
                        f"{median(comparison.ours) * 8e-9:.2f}",
                        f"{median(comparison.theirs) * 8e-9:.2f}",
                        *comparison.cells()[:-1],
                        f"{median(entry.numbers('ours_lost_ratio')):.1%}",
                        f"{median(entry.numbers('theirs_lost_ratio')):.1%}",
                        comparison.cells()[-1],
                    ]
                )
                figures.append(entry)
                save("net/against_iperf3", figures, version=version)


if __name__ == "__main__":
    main()
