"""How often is `hostbench ab` right? Real tests of identical settings, and of settings that differ.

usage: python -m benchmarks.decisions.settings [--short] [--again] [--minutes N] [--beside TEXT]
       python -m benchmarks.decisions.settings --table | --readme

Measures two hundred tests of identical settings, every other one beside a stress-ng that takes 30 %
of a CPU, and twenty of each of some settings that do differ. This takes 50 minutes on two CPUs;
with --short, two tests of each in twelve minutes. Each test is saved when it ends, and a later call
continues from there unless --again is given. With --minutes, no test begins after that many
minutes. --beside names what else runs on the host. --table prints what this script and
benchmarks.decisions.fresh have measured, --readme writes it into README and
docs/comparing.md; neither measures anything.

The file has the blocks of each test as the logarithm of B over A. So a change as large as the least
effect that a test printed can be planted in the blocks of the tests that follow it, which are then
judged by the same stopping rule.
"""

import csv
import itertools
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.decisions import fresh
from benchmarks.decisions.fresh import arguments_of, begin, compact, rows_of
from benchmarks.decisions.page import COMPARING, Tables, show
from benchmarks.decisions.resampled import (
    CHANGED,
    Tally,
    compared_tables,
    fresh_table,
    groups_of,
    lines_of,
)
from benchmarks.figures import file_of, maker
from benchmarks.tables import README
from benchmarks.trust.experiment import PLANTS, QUIET, Plant
from hostbench.decisions.ab import BLOCKS_USUAL, BlockFigure, SettingJudge
from hostbench.decisions.compare import usual_margin
from hostbench.model.decision import FigureKind, SettingTest, Word
from hostbench.run.ab import block_figure

RAW = file_of("decisions/settings", maker())
FIELDS = (
    *("effect", "workload", "a", "b", "plant", "beside", "time_unix_s", "took_s", "blocks"),
    *("repeated", "figure", "word", "ratio", "low", "high", "least_effect_ratio", "differences"),
)
TESTS, TESTS_SHORT = 20, 2
NOTHING = ("X=1", "X=2")
# The class of workloads by subsystem; the CPU workloads tested here work on registers.
CLASSES = {"cpu": "register kernels", "mem": "memory", "disk": "disk", "net": "network"}
# How many blocks apart two resampled tests begin.
STRIDE = 4
SHORTLY = ("duration_s=0.1", "warmup_s=0.02")
LOADED = next(plant for plant in PLANTS if plant.name == "hog 30 %")


@dataclass(frozen=True)
class Compared:
    """Two settings of a workload: two values of a parameter, or of a variable that nothing
    reads."""

    workload: str
    params: tuple[str, ...]
    a: str = NOTHING[0]
    b: str = NOTHING[1]

    @property
    def differs(self) -> bool:
        """Return whether the settings should make a difference."""
        return (self.a, self.b) != NOTHING

    def command(self) -> list[str]:
        """Return the command that a user would write."""
        found = [sys.executable, "-m", "hostbench", "ab", "--json", "--idle-policy=force"]
        found += ["--wait=600", "--workload", self.workload]
        found += [word for one in self.params for word in ("--param", one)]
        kind = "" if self.differs else "-env"
        return [*found, f"--a{kind}", self.a, f"--b{kind}", self.b]


IDENTICAL = (
    Compared("cpu.fma", ("threads=1", *SHORTLY)),
    Compared("mem.copy", ("threads=1", "size_bytes=134217728", *SHORTLY)),
    Compared("disk.rand_read", ("queue_depth=1", "file_bytes=268435456", *SHORTLY)),
    Compared("net.tcp_stream", ("target=loopback", *SHORTLY)),
    Compared("net.tcp_rr", ("target=loopback", *SHORTLY)),
)
DIFFERENT = (
    Compared("mem.read", IDENTICAL[1].params, "pages=4k", "pages=huge"),
    Compared("disk.rand_read", IDENTICAL[2].params[1:], "queue_depth=4", "queue_depth=1"),
    Compared("net.tcp_stream", IDENTICAL[3].params, "block_bytes=131072", "block_bytes=8192"),
)


def tests(count: int) -> Iterator[tuple[Compared, Plant]]:
    """Yield the tests of a whole measurement, `count` of each kind."""
    for _ in range(count):
        for one, plant in itertools.product(IDENTICAL, (PLANTS[0], LOADED)):
            yield one, plant
        for one in DIFFERENT:
            yield one, PLANTS[0]


def differences(test: SettingTest, kind: FigureKind) -> list[float]:
    """Return the figure of each block as the logarithm of B over A."""
    found = []
    for _, trials in itertools.groupby(test.trials, lambda trial: trial.block):
        attempts = [list(some) for _, some in itertools.groupby(trials, lambda one: one.attempt)]
        if (figure := block_figure(attempts, kind)) is not None:
            found.append(figure.difference)
    return found


def measured(one: Compared, plant: Plant, beside: str) -> list[dict[str, Any]]:
    """Run one test and return a row for each of its figures."""
    began_s = time.monotonic()
    with plant.begin():
        ended = subprocess.run(one.command(), capture_output=True, text=True, check=False)
    if not ended.stdout:
        raise SystemExit(f"{' '.join(one.command())}: {ended.stderr[-500:]}")
    test = SettingTest.model_validate_json(ended.stdout)
    shared = {
        "effect": one.differs,
        "workload": one.workload,
        "a": one.a,
        "b": one.b,
        "plant": plant.name,
        "beside": beside,
        "time_unix_s": round(test.created_unix_s),
        "took_s": round(time.monotonic() - began_s, 1),
        "blocks": test.blocks,
        "repeated": test.repeated,
    }
    found = [
        shared
        | {"figure": kind.value}
        | compact(figure.model_dump(include={"word", "ratio", "low", "high", "least_effect_ratio"}))
        | {"differences": " ".join(f"{one:.4g}" for one in differences(test, kind))}
        for kind, figure in test.figures.items()
    ]
    return found or [shared]


# ---- the table ----

Row = dict[str, str]


def by_test(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the rows by test."""
    keys = ("time_unix_s", "workload", "plant")
    return [list(some) for _, some in itertools.groupby(rows, lambda row: [row[k] for k in keys])]


def condition(row: Row) -> str:
    """Return what ran beside the test, or "quiet"."""
    found = [word for word in (row["plant"].replace(QUIET, ""), row["beside"]) if word]
    return " and ".join(found) or "quiet"


def wrong(all_tests: Sequence[list[Row]]) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of identical settings: a test that calls any figure better or worse is
    wrong."""
    tallies: dict[str, Tally] = {}
    for rows in all_tests:
        if rows[0]["effect"] == "False" and rows[0]["figure"]:
            name = f"identical settings, {rows[0]['workload']}, {condition(rows[0])}"
            tallies.setdefault(name, Tally()).count(any(row["word"] in CHANGED for row in rows))
    yield from tallies.items()


def wrong_in_all(all_tests: Sequence[list[Row]]) -> Iterator[tuple[str, Tally]]:
    """Yield the sums of `wrong`. Tests whose trials were all disturbed have no figure to judge and
    are counted apart."""
    with_figure, without = Tally(), Tally()
    for _, tally in wrong(all_tests):
        with_figure.add(tally)
    for rows in all_tests:
        if rows[0]["effect"] == "False":
            without.count(not rows[0]["figure"])
    yield "identical settings, all with a figure", with_figure
    yield "identical settings, no figure", without


def right(all_tests: Sequence[list[Row]]) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of settings that differ: the test has to report a difference, in one
    direction."""
    tallies: dict[str, Tally] = {}
    for rows in all_tests:
        if rows[0]["effect"] == "True" and rows[0]["figure"]:
            own = next((row for row in rows if row["figure"] == FigureKind.DELIVERED), rows[0])
            name = f"{own['workload']}, {own['a']} beside {own['b']}, {condition(own)}"
            tallies.setdefault(name, Tally()).count(own["word"] in CHANGED)
    yield from tallies.items()


def streams_of(all_tests: Sequence[list[Row]]) -> dict[tuple[str, str, str], list[Row]]:
    """Group the tests of identical settings by workload, figure and what ran beside them."""
    streams: dict[tuple[str, str, str], list[Row]] = {}
    for row in itertools.chain.from_iterable(all_tests):
        if row["effect"] == "False" and row["differences"]:
            key = row["workload"], row["figure"], condition(row)
            streams.setdefault(key, []).append(row)
    return streams


def blocks_of(rows: Sequence[Row]) -> list[float]:
    """Return the blocks of these tests, one test after the other."""
    return [float(one) for row in rows for one in row["differences"].split()]


def resampled(all_tests: Sequence[list[Row]]) -> Iterator[tuple[str, Tally]]:
    """Yield the tally of tests put together from measured blocks.

    A test begins at every STRIDE-th block and ends by the stopping rule. Each one that says better
    or worse is wrong.
    """
    tally = Tally()
    for (workload, *_), rows in streams_of(all_tests).items():
        blocks = blocks_of(rows)
        for start in range(0, len(blocks), STRIDE):
            word = _judged(workload, blocks[start:], 0.0)
            if word is not None:
                tally.count(word in CHANGED)
    yield f"identical settings, from every {STRIDE}th measured block on", tally


def least_effects(all_tests: Sequence[list[Row]]) -> Iterator[tuple[str, Tally]]:
    """Yield tallies of a planted change as large as the least effect that a test printed, planted
    in the blocks measured after that test."""
    for (workload, kind, where), rows in streams_of(all_tests).items():
        tally, sizes = Tally(), []
        for at, row in enumerate(rows):
            if not row["least_effect_ratio"]:
                continue
            least = float(row["least_effect_ratio"])
            later = blocks_of(rows[at + 1 :])
            for sign in (1, -1):
                word = _judged(workload, later, sign * math.log1p(least))
                if word is not None:
                    sizes.append(least)
                    tally.count(word is (Word.BETTER if sign > 0 else Word.WORSE))
        if tally.of:
            size = f"{100 * statistics.median(sizes):.1f} %"
            yield f"the least effect printed, {workload} {kind}, {where} ({size})", tally


def _judged(workload: str, blocks: Sequence[float], shift: float) -> Word | None:
    """Return the word of a test for these blocks with B changed by `shift`, or None when it would
    have needed more blocks."""
    margin = usual_margin(workload.partition(".")[0])
    judge = SettingJudge("higher", margin, BLOCKS_USUAL)
    for one in blocks:
        figure = BlockFigure((0.0, 0.0), (one + shift, one + shift))
        if judge.take({FigureKind.DELIVERED: figure}):
            return judge.figures()[FigureKind.DELIVERED].word
    return None


Rates = Callable[[Sequence[list[Row]]], Iterator[tuple[str, Tally]]]


def rates_table(rows: Sequence[Row], *rates: Rates) -> Iterator[str]:
    """Yield how often tests are right, as lines of Markdown."""
    all_tests = by_test(rows)
    yield from (progress(all_tests), "")
    yield from lines_of("tests", itertools.chain.from_iterable(one(all_tests) for one in rates))


def progress(all_tests: Sequence[list[Row]]) -> str:
    """Say how many tests of a whole measurement these are."""
    whole = sum(1 for _ in tests(TESTS))
    beside = sum(bool(own[0]["beside"]) for own in all_tests)
    done = f"{len(all_tests)} of {whole} tests"
    return f"{done} were measured, {beside} of them beside other work on the host."


def least_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the least effects that tests could see when they ended, by class, as lines of
    Markdown."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["least_effect_ratio"]:
            quiet = "quiet" if condition(row) == "quiet" else "beside a load"
            key = CLASSES[row["workload"].partition(".")[0]], row["figure"], quiet
            found.setdefault(key, []).append(row)
    yield "| least effect of | figure | host | tests | median | range | blocks |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, figure, quiet in sorted(found, key=_place):
        own = found[name, figure, quiet]
        sizes = sorted(100 * float(row["least_effect_ratio"]) for row in own)
        blocks = sorted(int(row["blocks"]) for row in own)
        cells = (
            *(name, figure, quiet, str(len(own)), f"{statistics.median(sizes):.1f} %"),
            *(f"{sizes[0]:.1f} to {sizes[-1]:.1f} %", f"{blocks[0]} to {blocks[-1]}"),
        )
        yield f"| {' | '.join(cells)} |"


def _place(key: tuple[str, str, str]) -> tuple[int, str, bool]:
    name, figure, quiet = key
    return list(CLASSES.values()).index(name), figure, quiet != "quiet"


def tables_of(measured_tests: Path, fresh_jobs: Path) -> Tables:
    """Return the tables of README and of docs/comparing.md from measured tests and jobs."""
    rows = rows_of(measured_tests)
    groups = groups_of({"fresh jobs": fresh_jobs})
    jobs = tuple(fresh_table(fresh_jobs, groups))
    return {
        README: {
            "fresh jobs": jobs,
            "fresh jobs one by one": compared_tables(groups),
            "settings": rates_table(rows, wrong, wrong_in_all, resampled, right, least_effects),
            "least effects": least_table(rows),
        },
        COMPARING: {
            "fresh jobs": jobs,
            "settings": rates_table(rows, wrong_in_all, resampled, right),
        },
    }


def main() -> None:
    """Run the tests that are missing, or show the tables."""
    if "--table" in sys.argv or "--readme" in sys.argv:
        show(tables_of(RAW, fresh.RAW))
        return
    arguments = arguments_of(__doc__)
    end_s = time.monotonic() + 60 * arguments.minutes
    done = len(by_test(begin(RAW, FIELDS, again=arguments.again)))
    left = list(tests(TESTS_SHORT if arguments.short else TESTS))[done:]
    with RAW.open("a", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        for number, (one, plant) in enumerate(left, start=done + 1):
            if time.monotonic() > end_s:
                print("more is left: start it again")
                break
            found = measured(one, plant, arguments.beside)
            table.writerows(found)
            file.flush()
            words = ", ".join(f"{row['figure']} {row['word']}" for row in found if "word" in row)
            took_s, blocks = found[0]["took_s"], found[0]["blocks"]
            print(
                f"test {number} of {done + len(left)}: {one.workload}, {plant.name}, "
                f"{blocks} blocks, {took_s} s: {words or 'no figure'}"
            )


if __name__ == "__main__":
    main()
