"""Round trips of net-bench against sockperf's ping-pong on the same CPUs: interleaved pairs, over
the loopback and between two network namespaces; and both ends spinning, against a time.

usage: python -m benchmarks.net.against_sockperf [PAIRS] (default: 11)
Needs the Debian package sockperf and, for the namespaces, root.

Both figures are medians of whole round trips of 14 bytes, the least that sockperf sends; by default
sockperf reports half a round trip. CPUs are kept awake for both (as root): in a virtual machine, a
CPU that has gone to sleep takes several times a round trip to wake up, and microseconds decide
which tool meets one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.arguments import given_number
from benchmarks.awake import cpus_awake
from benchmarks.figures import Entry, save, spread
from benchmarks.net.trials import (
    SOCKPERF_LEAST_BYTES,
    Placement,
    Way,
    apart,
    sockperf,
    sockperf_version,
    together,
    ways,
)
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)
from benchmarks.quiet import quietly_with_a_disk

SECONDS = 1
MICRO = 1e6
BLOCKING = Target("≤ 1.02", most=1.02)
SPINNING_MOST_S = 13e-6


@dataclass(frozen=True)
class Case:
    """A protocol and the placement of its two ends."""

    workload: str
    place: str
    placement: Placement

    @property
    def tcp(self) -> bool:
        """Return whether the protocol is TCP; otherwise it is UDP."""
        return self.workload == "tcp_rr"

    def ours(self, way: Way, wait: str = "block") -> float:
        """Run a trial and return its median round trip in seconds."""
        command = f"{self.workload} --block-bytes {SOCKPERF_LEAST_BYTES} --wait {wait}"
        options = f"{self.placement.options} --duration-s {SECONDS} --warmup-s 0.5"
        found: float = way.net_bench(f"{command} {options}")["end"]["metrics"]["round_trip_s"]
        return found

    def theirs(self, way: Way) -> float:
        """Run sockperf and return its median round trip in seconds."""
        return sockperf(way, self.placement, tcp=self.tcp, seconds=SECONDS)

    def facts(self, way: Way, wait: str) -> dict[str, object]:
        """Return what is saved about the case besides its figures."""
        return {
            "way": way.name,
            "workload": self.workload,
            "wait": wait,
            "near_cpus": self.placement.near,
            "far_cpus": self.placement.far,
        }


def cases() -> Iterator[Case]:
    """Yield the cases: both ends on different CPUs, and both on one CPU."""
    for workload in ("tcp_rr", "udp_rr"):
        yield Case(workload, "two CPUs", apart())
        yield Case(workload, "one CPU", together())


def blocking(way: Way, case: Case, pairs: int) -> Entry:
    """Measure a case, print its row of the table and return the entry to save."""
    found = interleaved(pairs, lambda: case.ours(way), lambda: case.theirs(way), disk=True)
    comparison = Comparison(
        BLOCKING, tuple(ours for ours, _ in found), tuple(theirs for _, theirs in found)
    )
    ours, theirs = spread(list(comparison.ours)), spread(list(comparison.theirs))
    print_row(
        [
            way.name,
            f"{case.workload}, {case.place}",
            f"{ours['median'] * MICRO:.2f}",
            f"{theirs['median'] * MICRO:.2f}",
            *comparison.cells(),
        ]
    )
    return comparison.entry(**case.facts(way, "block"))


def spinning(way: Way, case: Case, runs: int) -> Entry:
    """Measure a case with both ends spinning. It has no counterpart in sockperf, only a target."""
    found = [quietly_with_a_disk(case.ours, way, "spin") for _ in range(runs)]
    figure = spread(found)
    holds = figure["median"] <= SPINNING_MOST_S
    target = f"≤ {SPINNING_MOST_S * MICRO:.0f} µs"
    print_row(
        [
            way.name,
            f"{case.workload}, {case.place}, spinning",
            f"{figure['median'] * MICRO:.2f}",
            "",
            "",
            f"{figure['low'] * MICRO:.2f} – {figure['high'] * MICRO:.2f} µs",
            f"{figure['mad_relative']:.1%}",
            f"{figure['n']}",
            target,
            "holds" if holds else "**misses**",
        ]
    )
    facts = {**case.facts(way, "spin"), "target": target}
    return Entry(facts, {"ours": found})


def main() -> None:
    pairs = given_number(11)
    version = sockperf_version()
    print(f"{version}\n")
    print_header(("way", "case", "ours, µs", "sockperf", *RATIO_COLUMNS))
    figures: list[Entry] = []
    with ways() as found, cpus_awake():
        for way in found:
            for case in cases():
                figures.append(blocking(way, case, pairs))
                save("net/against_sockperf", figures, version=version)
        for case in cases():
            if case.placement.near == case.placement.far:
                continue  # on one CPU, a spinning end would keep the other from running
            figures.append(spinning(found[0], case, pairs))
            save("net/against_sockperf", figures, version=version)


if __name__ == "__main__":
    main()
