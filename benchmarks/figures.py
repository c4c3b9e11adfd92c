"""What every benchmark of this directory records with its figures: spread, host, raw values."""

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
# The load average of the last minute, before the first figure.
LOAD = f"{os.getloadavg()[0]:.2f}"

Value = float | str | bool | None
# Facts about one entry, or about all entries of a file: `name: value` lines in its header.
Facts = Mapping[str, object]
_FACT = re.compile(r"# (?:(\d+) )?(\w+): (.*)")


@dataclass(frozen=True)
class Entry:
    """The raw figures of one row of a table. `columns` has one value for each trial or pair of
    trials, None where there is none."""

    facts: Facts
    columns: Mapping[str, Sequence[Value]]

    def numbers(self, column: str) -> list[float]:
        """Return the values of a column, without those that are None."""
        return [float(value) for value in self.columns[column] if value is not None]


CONFIDENCE = 0.95


@dataclass(frozen=True)
class OrderInterval:
    """An interval of the median between two order statistics. `confidence` is its coverage."""

    low: float
    high: float
    confidence: float


def order_interval(values: Sequence[float]) -> OrderInterval:
    """Return the narrowest symmetric interval between two order statistics that covers the median
    with at least 95 %.

    The interval assumes no distribution. Below 6 values no interval reaches 95 %; the whole range
    is returned with the coverage that it has. The median lies between the k-th smallest and the
    k-th largest of n with probability 1 - 2 P(B <= k - 1), where B is binomial with n and 1/2
    (Hoefler and Belli, SC'15, section 3.1.3, exact instead of their normal approximation).
    """
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
    """Return the median with its interval, the relative median absolute deviation and the
    extremes."""
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
    """Return a description of this host and of the program that gave the figures; of several, for
    `stack`, of cpu-bench."""
    binary = program("cpu" if subsystem == "stack" else subsystem)
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
    """Return the folder for this machine's figures, named after the maker of its CPU."""
    vendor = _of_cpu("vendor_id")
    return {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, "arm")


def _of_cpu(name: str) -> str:
    """Return a field of the first CPU in /proc/cpuinfo, or an empty string when it is missing."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def _commit() -> str:
    """Return the commit that was measured, with a + when files differ from it. Files that hold
    figures do not count."""
    git = ["git", "-C", str(BENCHMARKS)]
    named = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    files = (":(top)", *(f":(exclude){path}" for path in ("*/results/*", "README.md")))
    status = [*git, "status", "--porcelain", "-uno", "--", *files]
    changed = subprocess.run(status, capture_output=True)
    return named.stdout.strip() + "+" * bool(changed.stdout)


def save(name: str, entries: Sequence[Entry], *, of: str = "", **facts: object) -> None:
    """Write the raw figures of `cpu/NAME`, `mem/NAME` or `stack/NAME` to a CSV file beside their
    script.

    The file is in the folder `of`: of a graphics card, or of a CPU's maker, by default this CPU's.
    Its header, lines that start with #, has the host, the facts of all entries, and the facts of
    each entry by its number. The column `entry` of the rows has that number.
    """
    path = file_of(name, of or maker())
    path.parent.mkdir(exist_ok=True, parents=True)
    shared = {"date": _today(), **host(name.partition("/")[0]), **facts}
    columns = list(dict.fromkeys(column for entry in entries for column in entry.columns))
    with path.open("w", newline="") as file:
        known = {key: value for key, value in shared.items() if value is not None}
        file.writelines(f"# {key}: {_fact(value)}\n" for key, value in known.items())
        for number, entry in enumerate(entries, start=1):
            known = {key: value for key, value in entry.facts.items() if value is not None}
            file.writelines(f"# {number} {key}: {_fact(value)}\n" for key, value in known.items())
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["entry", *columns])
        for number, entry in enumerate(entries, start=1):
            values = [entry.columns.get(column, ()) for column in columns]
            rows.writerows([number, *row] for row in itertools.zip_longest(*values))


def load(name: str, of: str) -> tuple[dict[str, str], list[Entry]] | None:
    """Return what `save` wrote on a machine of this maker, or None when there is no file.

    The result is the facts of all entries, and the entries; the values of facts are text. A file
    without a column `entry` has one entry.
    """
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
    """Return the entries of today's unfinished run of this program on this machine, to continue it.

    Return no entries when the file is from another commit, day or machine, or from changed files.
    """
    found = load(name, maker())
    if found is None:
        return []
    facts, entries = found
    now = {"date": _today(), **host(name.partition("/")[0])}
    same = all(facts.get(key) == str(now[key]) for key in ("date", "cpu", "kernel", "commit"))
    return entries if same and not facts["commit"].endswith("+") else []


def file_of(name: str, of: str) -> Path:
    """Return the path of the raw figures of `cpu/NAME` from the machine of this maker."""
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
