"""The tables of README.md, from the raw figures of each maker's machine side by side.

usage: python -m benchmarks.tables
Writes each table between its two comments in README.md.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.figures import BENCHMARKS, MAKERS, Entry, Facts, load, order_interval, spread

README = BENCHMARKS / "README.md"
Row = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Unit:
    """The unit of the medians in a table: `scale` times the raw figures, with this many digits."""

    name: str
    scale: float
    digits: int


GIGA_OPERATIONS = Unit("Gop/s", 1e-9, 1)
GIGABYTES = Unit("GB/s", 1e-9, 1)
GIGABITS = Unit("Gbit/s", 8e-9, 2)
OPERATIONS = Unit("operation/s", 1, 0)
NANOSECONDS = Unit("ns", 1e9, 2)
MICROSECONDS = Unit("µs", 1e6, 2)
COMPARED = Unit("compared", 1, 1)


@dataclass(frozen=True)
class Ratio:
    """Our figure divided by the other's, by the names of their columns."""

    title: str
    ours: str = "ours"
    theirs: str = "theirs"


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A script of this directory and the raw figures it saves.

    - `name`: such as `mem/against_likwid`.
    - `command`: the words after `python -m`. `{NAME}` is an environment variable, and `needs` says
      what it has to contain.
    - `before`: a command that starts it, for example on a disk in memory.
    """

    name: str
    command: str
    minutes: int
    needs: str = ""
    before: str = ""

    @property
    def variables(self) -> list[str]:
        """Return the environment variables that the command needs."""
        return re.findall(r"{(\w+)}", self.command)


def _given(entry: Entry) -> dict[str, str]:
    """Return the parameters in the command of an entry."""
    words = shlex.split(str(entry.facts["command"]))[2:]
    return dict(zip(words[::2], words[1::2], strict=True))


def differing(entries: Sequence[Entry]) -> set[str]:
    """Return the parameters whose values differ between the entries of one file.

    Sizes are left out because they follow from the caches of the machine.
    """
    given = [_given(entry) for entry in entries if "command" in entry.facts]
    names = {name for one in given for name in one} - {"--size-bytes"}
    return {name for name in names if len({one.get(name) for one in given}) > 1}


def by_parameters(entry: Entry, names: Collection[str]) -> str:
    """Name an entry by its workload and its parameters among `names`."""
    workload = shlex.split(str(entry.facts["command"]))[1]
    given = (
        f"{name.removeprefix('--')} {word}" for name, word in _given(entry).items() if name in names
    )
    return ", ".join([f"`{workload}`", *given])


def of_stream(entry: Entry, names: Collection[str]) -> str:
    """Name a case of iperf3."""
    streams = entry.facts["streams"]
    many = "s" * (streams != "1")
    return f"{entry.facts['way']}, {by_parameters(entry, names)}, {streams} stream{many}"


def of_check(entry: Entry, names: Collection[str]) -> str:
    """Name a figure of a kernel whose results are compared."""
    named = by_parameters(entry, set(names) - {"--file-bytes"})
    return f"{entry.facts['kind']}: {named}, {entry.facts['figure']}"


def of_level(entry: Entry, names: Collection[str]) -> str:
    """Name a kernel in a level of caches, or in memory."""
    named = by_parameters(entry, names)
    level, size = entry.facts.get("level"), int(_given(entry)["--size-bytes"]) / 1000
    return f"{level}, {size:,.0f} kB: {named}" if level else named


def of_round_trip(entry: Entry, names: Collection[str]) -> str:
    """Name a case of sockperf."""
    del names
    facts = entry.facts
    place = "one CPU" if facts["near_cpus"] == facts["far_cpus"] else "two CPUs"
    spinning = ", spinning" if facts["wait"] == "spin" else ""
    return f"{facts['way']}, `{facts['workload']}`, {place}{spinning}"


@dataclass(frozen=True, kw_only=True)
class Pairs(Benchmark):
    """Pairs of a run of ours and a run of another tool."""

    other: str
    unit: Unit
    ratios: tuple[Ratio, ...] = (Ratio("ratio"),)
    case: Callable[[Entry, Collection[str]], str] = by_parameters

    def head(self) -> list[str]:
        """Return the columns of one maker."""
        return [
            f"ours, {self.unit.name}",
            self.other,
            *(ratio.title for ratio in self.ratios),
            "pairs",
        ]

    def rows(self, entries: Sequence[Entry], names: Collection[str]) -> Row:
        """Return the cells of one maker, by case."""
        return {self.case(entry, names): self._cells(entry) for entry in entries}

    def _cells(self, entry: Entry) -> list[str]:
        first = self.ratios[0]
        sides = [entry.numbers(column) for column in (first.ours, first.theirs)]
        middles = [
            f"{median(side) * self.unit.scale:,.{self.unit.digits}f}" if side else "–"
            for side in sides
        ]
        return [*middles, *(self._ratio(entry, one) for one in self.ratios), str(len(sides[0]))]

    @staticmethod
    def _ratio(entry: Entry, columns: Ratio) -> str:
        ours, theirs = entry.numbers(columns.ours), entry.numbers(columns.theirs)
        if "differs" in entry.facts:
            return "differs"
        if not theirs or len(ours) != len(theirs):
            return "–"
        found = spread([a / b for a, b in zip(ours, theirs, strict=True)])
        return f"**{found['median']:.3f}** ({found['low']:.3f} – {found['high']:.3f})"


@dataclass(frozen=True, kw_only=True)
class Shares(Benchmark):
    """Every kernel as a share of its limit; the kernels of one workload and instruction set share a
    row."""

    def head(self) -> list[str]:
        """Return the columns of one maker."""
        return ["kernels", "lowest and highest median", "extremes"]

    def rows(self, entries: Sequence[Entry], _names: Collection[str]) -> Row:
        """Return the cells of one maker, by workload and instruction set."""
        groups: dict[str, list[list[float]]] = {}
        for entry in entries:
            if shares := entry.numbers("efficiency"):
                groups.setdefault(_group(entry.facts), []).append(shares)
        return {name: self._cells(found) for name, found in groups.items()}

    @staticmethod
    def _cells(kernels: Sequence[Sequence[float]]) -> list[str]:
        middles = [median(shares) for shares in kernels]
        trials = [share for shares in kernels for share in shares]
        return [
            str(len(kernels)),
            f"{min(middles):.3f} – {max(middles):.3f}",
            f"{min(trials):.3f} – {max(trials):.3f}",
        ]


@dataclass(frozen=True, kw_only=True)
class UnderLoad(Benchmark):
    """Trials of one kernel on a quiet host and under a load, as shares of the quiet median."""

    def head(self) -> list[str]:
        """Return the columns of one maker."""
        return ["disturbed", "clean slices", "clean-slice figure", "whole run"]

    def rows(self, entries: Sequence[Entry], _names: Collection[str]) -> Row:
        """Return the cells of one maker, by load; the entry without a load comes first."""
        quiet = median(entries[0].numbers("operations_per_second"))
        return {str(entry.facts["load"]): self._cells(entry, quiet) for entry in entries}

    @staticmethod
    def _cells(entry: Entry, quiet: float) -> list[str]:
        clean = entry.numbers("clean_slice_ratio")
        words = entry.columns["disturbed"]
        return [
            f"{sum(codes is not None for codes in words)} of {len(words)}",
            f"{min(clean):.0%} – {max(clean):.0%}",
            *(
                f"{min(entry.numbers(name)) / quiet:.3f} – {max(entry.numbers(name)) / quiet:.3f}"
                for name in ("operations_per_second", "operations_per_second_makespan")
            ),
        ]


@dataclass(frozen=True, kw_only=True)
class BesideHogs(Benchmark):
    """Trials of fixed_work beside hogs of a known share and period."""

    def head(self) -> list[str]:
        """Return the columns of one maker."""
        return ["share of the hog", "found beyond it, points", "period found", "over the hog's"]

    def rows(self, entries: Sequence[Entry], _names: Collection[str]) -> Row:
        """Return the cells of one maker, by hog."""
        return {str(entry.facts["hog"]): self._cells(entry) for entry in entries}

    @staticmethod
    def _cells(entry: Entry) -> list[str]:
        excesses, periods = entry.numbers("excess_ratio"), entry.numbers("period_ratio")
        interval = order_interval(excesses)
        return [
            f"{median(entry.numbers('hog_ratio')):.2%}",
            f"**{median(excesses) * 100:+.2f}** "
            f"({interval.low * 100:+.2f} – {interval.high * 100:+.2f})",
            f"{len(periods)} of {len(excesses)}",
            f"**{median(periods):.4f}** ({min(periods):.4f} – {max(periods):.4f})"
            if periods
            else "–",
        ]


Table = Pairs | Shares | UnderLoad | BesideHogs


def _group(facts: Facts) -> str:
    words = shlex.split(str(facts["command"]))
    return f"`{words[1]}` {words[words.index('--isa') + 1]}"


FIO = (
    Ratio("rate", "ours_operations_per_second", "theirs_operations_per_second"),
    Ratio("p50", "ours_latency_p50_s", "theirs_latency_p50_s"),
    Ratio("p99", "ours_latency_p99_s", "theirs_latency_p99_s"),
    Ratio(
        "CPU time",
        "ours_cpu_seconds_per_million_operations",
        "theirs_cpu_seconds_per_million_operations",
    ),
)
CHECKED = (Ratio("figure"), Ratio("time of the trial", "ours_wall_s", "theirs_wall_s"))
STREAM = "stream.c 5.10, built as README.md says"
MULTICHASE = "google/multichase, built with its own Makefile"
IPERF3 = "an iperf3 of 3.18 or newer"
LOOP_DEVICE = "benchmarks/disk/on_loop_device.sh"
TABLES: tuple[Benchmark, ...] = (
    Shares(name="cpu/against_limit", command="benchmarks.cpu.against_limit 7", minutes=12),
    Pairs(
        name="cpu/against_likwid_avx2_avx512",
        command="benchmarks.cpu.against_likwid 11 avx2 avx512",
        minutes=6,
        other="likwid-bench",
        ratios=(Ratio("ratio", theirs="likwid"),),
        unit=GIGA_OPERATIONS,
    ),
    Pairs(
        name="cpu/against_likwid_scalar_sse2",
        command="benchmarks.cpu.against_likwid 7 scalar sse2",
        minutes=3,
        other="likwid-bench",
        ratios=(Ratio("ratio", theirs="likwid"),),
        unit=GIGA_OPERATIONS,
    ),
    Pairs(
        name="cpu/against_hpl",
        command="benchmarks.cpu.against_hpl",
        minutes=25,
        other="HPL",
        ratios=(Ratio("ratio", theirs="hpl"),),
        unit=GIGA_OPERATIONS,
    ),
    Pairs(
        name="cpu/against_dgemm",
        command="benchmarks.cpu.against_dgemm 7",
        minutes=3,
        other="plain loop",
        ratios=(Ratio("ratio", theirs="plain"),),
        unit=GIGA_OPERATIONS,
    ),
    Pairs(
        name="cpu/linpack_of_gemm",
        command="benchmarks.cpu.linpack_of_gemm",
        minutes=4,
        other="gemm",
        ratios=(Ratio("ratio", theirs="gemm"),),
        unit=GIGA_OPERATIONS,
    ),
    Pairs(
        name="cpu/against_core_to_core_latency",
        command="benchmarks.cpu.against_core_to_core_latency 11",
        minutes=2,
        other="core-to-core-latency",
        unit=NANOSECONDS,
    ),
    Pairs(
        name="cpu/against_perf_bench",
        command="benchmarks.cpu.against_perf_bench 11",
        minutes=2,
        other="perf bench",
        unit=NANOSECONDS,
    ),
    Pairs(
        name="cpu/against_cyclictest",
        command="benchmarks.cpu.against_cyclictest 11",
        minutes=2,
        other="cyclictest",
        unit=MICROSECONDS,
    ),
    BesideHogs(
        name="cpu/fixed_work_of_hogs",
        command="benchmarks.cpu.fixed_work_of_hogs 11",
        minutes=3,
    ),
    UnderLoad(name="cpu/under_load", command="benchmarks.cpu.under_load", minutes=1),
    Benchmark(name="cpu/clock_spread", command="benchmarks.cpu.clock_spread", minutes=1),
    Pairs(
        name="mem/against_likwid",
        command="benchmarks.mem.against_likwid 7",
        minutes=6,
        other="likwid-bench",
        unit=GIGABYTES,
    ),
    Pairs(
        name="mem/against_likwid_levels",
        command="benchmarks.mem.against_likwid 11 levels",
        minutes=6,
        other="likwid-bench",
        unit=GIGABYTES,
        case=of_level,
    ),
    Pairs(
        name="mem/prefetch",
        command="benchmarks.mem.prefetch 7",
        minutes=5,
        other="without",
        unit=GIGABYTES,
    ),
    Pairs(
        name="mem/against_stream",
        command="benchmarks.mem.against_stream {STREAM} 7",
        minutes=4,
        needs=STREAM,
        other="STREAM",
        unit=GIGABYTES,
    ),
    Pairs(
        name="mem/against_multichase",
        command="benchmarks.mem.against_multichase {MULTICHASE} 11",
        minutes=4,
        needs=MULTICHASE,
        other="multichase",
        unit=NANOSECONDS,
        case=of_level,
    ),
    Pairs(
        name="mem/against_assembly",
        command="benchmarks.mem.against_assembly 7",
        minutes=3,
        other="assembly",
        unit=NANOSECONDS,
    ),
    Benchmark(name="mem/repeatability", command="benchmarks.mem.repeatability", minutes=2),
    Pairs(
        name="disk/against_fio_on_loop_device",
        command="benchmarks.disk.against_fio 11",
        minutes=8,
        before=LOOP_DEVICE,
        other="fio",
        unit=OPERATIONS,
        ratios=FIO,
    ),
    Pairs(
        name="disk/against_fio",
        command="benchmarks.disk.against_fio 11",
        minutes=8,
        other="fio",
        unit=OPERATIONS,
        ratios=FIO,
    ),
    Benchmark(name="disk/contamination", command="benchmarks.disk.contamination", minutes=1),
    Pairs(
        name="net/against_iperf3",
        command="benchmarks.net.against_iperf3 7",
        minutes=12,
        needs=IPERF3,
        other="iperf3",
        unit=GIGABITS,
        case=of_stream,
    ),
    Pairs(
        name="net/against_sockperf",
        command="benchmarks.net.against_sockperf 7",
        minutes=5,
        other="sockperf",
        unit=MICROSECONDS,
        case=of_round_trip,
    ),
    Benchmark(name="net/loss_is_exact", command="benchmarks.net.loss_is_exact", minutes=3),
    Pairs(
        name="stack/verification",
        command="benchmarks.verification 15",
        minutes=8,
        other="not compared",
        unit=COMPARED,
        ratios=CHECKED,
        case=of_check,
    ),
    Pairs(
        name="stack/verification_disk",
        command="benchmarks.verification 11 disk",
        minutes=3,
        other="not compared",
        unit=COMPARED,
        ratios=CHECKED,
        case=of_check,
    ),
    Benchmark(name="trust/jobs", command="benchmarks.trust.experiment", minutes=100),
    Benchmark(name="trust/quick", command="benchmarks.trust.quick", minutes=220),
)


def machine(facts: Facts) -> str:
    """Describe a machine: `AMD EPYC, family 25, model 17, 2 CPUs, 2026-11-24, commit 1ab2c3d, load
    0.04`."""
    named = [
        facts.get("cpu"),
        facts.get("model"),
        f"{facts['cpus']} CPUs",
        facts.get("date"),
        f"commit {facts['commit']}",
        f"load {facts['load']}" if "load" in facts else None,
    ]
    return ", ".join(str(one) for one in named if one)


def render(table: Table) -> str:
    """Return a table in Markdown, with the machine and the columns of each maker."""
    found = {title: load(table.name, one) for one, title in MAKERS.items()}
    known = {title: one for title, one in found.items() if one is not None}
    names = {name for _, entries in known.values() for name in differing(entries)}
    rows = {
        title: table.rows(_named(facts, entries), names)
        for title, (facts, entries) in known.items()
    }
    head = table.head()
    if not known:
        return "Not measured yet."
    lines = []
    for title, (facts, entries) in known.items():
        lines.append(f"{title}: {machine(facts)}.")
        reasons = dict.fromkeys(
            str(one.facts["differs"]) for one in _named(facts, entries) if "differs" in one.facts
        )
        lines += [f"No ratio where conditions differ: {why}." for why in reasons]
    titles = ["case", *(f"{title}: {column}" for title in known for column in head)]
    lines += ["", _row(titles), "|---" * len(titles) + "|"]
    for case in dict.fromkeys(case for own in rows.values() for case in own):
        notes = {title: marked(case, facts) for title, (facts, _) in known.items()}
        cells = [case]
        for title, own in rows.items():
            first, *others = own.get(case, ["–"] * len(head))
            cells += [first + notes[title] if case in own else first, *others]
        lines.append(_row(cells))
    return "\n".join(lines)


def _named(facts: Facts, entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries, each with the fact `differs` of the file: the condition that differs
    between the tools."""
    shared = {name: facts[name] for name in ("differs",) if name in facts}
    return [replace(entry, facts={**shared, **entry.facts}) for entry in entries]


def marked(case: str, facts: Facts) -> str:
    """Mark kernels whose machine code has changed since these figures.

    The fact `changed` names workloads, or one instruction set of a workload such as `int_mul sse2`.
    """
    workload, _, rest = case.partition("`")[2].partition("`")
    changed = str(facts["changed"]).split(", ") if "changed" in facts else []
    is_other = workload in changed or f"{workload} {rest.strip()}" in changed
    return " (before this change)" if is_other else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return the page with each table between its two comments."""

    def table(match: re.Match[str]) -> str:
        name = match[1]
        known = {one.name: one for one in TABLES}
        found = known.get(name)
        if not isinstance(found, Table):
            raise SystemExit(f"README.md: {name} is no table; there are {', '.join(known)}")
        return f"<!-- table: {name} -->\n{render(found)}\n<!-- end of {name} -->"

    return re.sub(r"<!-- table: (\S+) -->\n.*?<!-- end of \1 -->", table, page, flags=re.DOTALL)


def main() -> None:
    """Write the tables into README."""
    README.write_text(written(README.read_text()))


if __name__ == "__main__":
    main()
