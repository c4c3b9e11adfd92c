"""What every benchmark of this directory says of its figures: spread, host, raw values kept."""

import csv
import datetime
import itertools
import math
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.programs import program

ALL_THREADS = len(os.sched_getaffinity(0))
BENCHMARKS = Path(__file__).parent
MAKERS = {"intel": "Intel", "amd": "AMD", "arm": "Arm"}
# Before the first figure: how many processes wanted a CPU in the last minute.
LOAD = f"{os.getloadavg()[0]:.2f}"

Value = float | str | bool | None
# What holds for an entry, or for all of a file: `name: value` in its head.
Facts = Mapping[str, object]
_FACT = re.compile(r"# (?:(\d+) )?(\w+): (.*)")


@dataclass(frozen=True)
class Entry:
    """The raw figures of one row of a table. `columns` has a value for each trial or pair of
    trials; None: there was none."""

    facts: Facts
    columns: Mapping[str, Sequence[Value]]

    def numbers(self, column: str) -> list[float]:
        """Return the values of a column, without those that are None."""
        return [float(value) for value in self.columns[column] if value is not None]


CONFIDENCE = 0.95


@dataclass(frozen=True)
class OrderInterval:
    """An interval of the median between two order statistics; `confidence` is what it has."""

    low: float
    high: float
    confidence: float


def order_interval(values: Sequence[float]) -> OrderInterval:
    """Return the narrowest symmetric interval between two order statistics that covers the median
    with at least 95 %, with no assumption on the distribution; below 6 values, where there is none,
    the whole range with the coverage it has.

    Between the k-th smallest and the k-th largest of n the median lies with probability
    1 - 2 P(B <= k - 1), B binomial with n and 1/2 (Hoefler and Belli, SC'15, section 3.1.3, exact
    instead of their normal approximation)."""
    ordered = sorted(values)
    n = len(ordered)
    rank, below = 1, 1
    while rank < (n + 1) // 2 and _coverage(n, below + math.comb(n, rank)) >= CONFIDENCE:
        below += math.comb(n, rank)
        rank += 1
    return OrderInterval(ordered[rank - 1], ordered[n - rank], _coverage(n, below))


def _coverage(n: int, below: int) -> float:
    everything: int = 2**n
    return (everything - 2 * below) / everything


def spread(values: list[float]) -> dict[str, float]:
    """Median with its interval, relative median absolute deviation, extremes."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    interval = order_interval(values)
    return {
        "n": len(values),
        "median": middle,
        "mad_relative": deviation / middle,
        "min": min(values),
        "max": max(values),
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence,
    }


def host(subsystem: str) -> dict[str, object]:
    """Where the figures come from, and the program that gave them."""
    binary = program(subsystem)
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    family, model = (_of_cpu(name) for name in ("cpu family", "model"))
    return {
        "cpu": _of_cpu("model name") or platform.processor(),
        "model": f"family {family}, model {model}" if family and model else None,
        "cpus": ALL_THREADS,
        "kernel": platform.release(),
        "commit": _commit(),
        "load": LOAD,
        "program": version,
    }


def maker() -> str:
    """The folder of this machine's figures: the maker of its CPU."""
    vendor = _of_cpu("vendor_id")
    return {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, "arm")


def _of_cpu(name: str) -> str:
    """A line of the first CPU in /proc/cpuinfo; empty where there is none."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def _commit() -> str:
    """The commit that was measured; with a + where files differ from it, other than those that
    hold figures."""
    git = ["git", "-C", str(BENCHMARKS)]
    named = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    files = (":(top)", *(f":(exclude){path}" for path in ("*/results/*", "README.md")))
    status = [*git, "status", "--porcelain", "-uno", "--", *files]
    changed = subprocess.run(status, capture_output=True)
    return named.stdout.strip() + "+" * bool(changed.stdout)


def save(name: str, entries: Sequence[Entry], *, of: str = "", **facts: object) -> None:
    """Keep the raw figures of `cpu/NAME`, `mem/NAME` or `stack/NAME` as a CSV file beside their
    script, in the folder of the maker: `of`, else the CPU's. Its head, lines with a #, has the
    host, the facts of all entries, and those of each by its number; below, the column `entry` has
    that number."""
    path = file_of(name, of or maker())
    path.parent.mkdir(exist_ok=True, parents=True)
    subsystem = name.partition("/")[0]
    shared = {"date": _today(), **host("cpu" if subsystem == "stack" else subsystem), **facts}
    columns = list(dict.fromkeys(column for entry in entries for column in entry.columns))
    with path.open("w", newline="") as file:
        said = {key: value for key, value in shared.items() if value is not None}
        file.writelines(f"# {key}: {_fact(value)}\n" for key, value in said.items())
        for number, entry in enumerate(entries, start=1):
            known = {key: value for key, value in entry.facts.items() if value is not None}
            file.writelines(f"# {number} {key}: {_fact(value)}\n" for key, value in known.items())
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["entry", *columns])
        for number, entry in enumerate(entries, start=1):
            values = [entry.columns.get(column, ()) for column in columns]
            rows.writerows([number, *row] for row in itertools.zip_longest(*values))


def load(name: str, of: str) -> tuple[dict[str, str], list[Entry]] | None:
    """What `save` has written on a machine of a maker: the facts of all entries, and the entries,
    whose facts are text; a file without a column `entry` has one. None: nothing yet."""
    path = file_of(name, of)
    if not path.exists():
        return None
    lines = path.read_text().splitlines()
    heads = [match for line in lines if (match := _FACT.fullmatch(line))]
    facts: dict[str, dict[str, str]] = {}
    for number, key, value in (match.groups() for match in heads):
        facts.setdefault(number or "", {})[key] = value
    columns: dict[str, dict[str, list[Value]]] = {}
    for row in csv.DictReader(lines[len(heads) :]):
        entry = columns.setdefault(row.pop("entry", ""), {column: [] for column in row})
        for column, text in row.items():
            entry[column].append(_value(text))
    entries = [Entry(facts.get(number, {}), found) for number, found in columns.items()]
    return facts.get("", {}), entries


def begun(name: str) -> list[Entry]:
    """What a run of this program on this machine has saved today and may be gone on with; empty
    where the file is of another commit, day or machine, or of changed files."""
    found = load(name, maker())
    if found is None:
        return []
    facts, entries = found
    now = {"date": _today(), **host(name.partition("/")[0])}
    same = all(facts.get(key) == str(now[key]) for key in ("date", "cpu", "kernel", "commit"))
    return entries if same and not facts["commit"].endswith("+") else []


def file_of(name: str, of: str) -> Path:
    """Where the raw figures of `cpu/NAME` from the machine of a maker are."""
    subsystem, _, file = name.partition("/")
    return BENCHMARKS / subsystem / "results" / of / f"{file}.csv"


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={part}" for key, part in value.items())
    return str(value)


def _value(text: str) -> Value:
    try:
        return float(text) if text else None
    except ValueError:
        return text
