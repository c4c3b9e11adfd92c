"""Measure the tables that no machine of this CPU's maker has yet, and write them to README.md.

usage: python -m benchmarks.missing [--plan] [--again] [NAME ...]

NAME selects the tables whose names begin with it, such as cpu or mem/against_likwid. --plan prints
what would run and how long it takes, and runs nothing. --again also measures tables that are there.
Tables that compare unequal conditions are from older scripts, and tables of kernels whose machine
code has changed are from older programs: both are measured anew. When this machine lacks something
that a table needs, the script names it and leaves the table out.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable

from benchmarks.figures import BENCHMARKS, MAKERS, load, maker
from benchmarks.tables import README, TABLES, Benchmark, written


def arguments_of(one: Benchmark) -> list[str]:
    """Return the command line of a table's script."""
    named = {name: os.environ[name] for name in one.variables}
    return [
        *shlex.split(one.before),
        sys.executable,
        "-m",
        *shlex.split(one.command.format(**named)),
    ]


def lacking(one: Benchmark, of: str) -> str:
    """Return why this maker's columns need the table: `missing`, `unequal conditions` or `other
    machine code`; an empty string when they do not."""
    found = load(one.name, of)
    if found is None:
        return "missing"
    facts, entries = found
    unequal = any("differs" in known for known in (facts, *(entry.facts for entry in entries)))
    if unequal:
        return "unequal conditions"
    return "other machine code" if "changed" in facts else ""


def measure(wanted: Iterable[Benchmark]) -> bool:
    """Run the scripts one after another. Return whether all succeeded."""
    succeeded = True
    for one in wanted:
        print(f"\n{one.name}, about {one.minutes} min", flush=True)
        began_s = time.monotonic()
        ended = subprocess.run(arguments_of(one), cwd=BENCHMARKS.parent)
        succeeded &= ended.returncode == 0
        took_min = (time.monotonic() - began_s) / 60
        print(f"{one.name}: exit {ended.returncode}, {took_min:.1f} min", flush=True)
    return succeeded


def main() -> None:
    """Print the tables that are left out, then measure the others."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    known = [one for one in TABLES if one.name.startswith(tuple(arguments.names or [""]))]
    if not known:
        names = ", ".join(one.name for one in TABLES)
        parser.error(f"no table begins with {' or '.join(arguments.names)}; there are {names}")
    why = {one.name: lacking(one, maker()) or "again" * arguments.again for one in known}
    wanted = [one for one in known if why[one.name]]
    possible = [one for one in wanted if all(os.environ.get(name) for name in one.variables)]
    for one in wanted:
        if one not in possible:
            print(f"{one.name} is left out: set {', '.join(one.variables)} to {one.needs}")
    minutes = sum(one.minutes for one in possible)
    print(f"{len(possible)} tables for {MAKERS[maker()]}, about {minutes} min:")
    for one in possible:
        command = f"{one.before} {one.command}".strip()
        print(f"{one.minutes:4} min  {one.name} ({why[one.name]}): {command}")
    if arguments.plan:
        return
    succeeded = measure(possible)
    README.write_text(written(README.read_text()))
    sys.exit(not succeeded)


if __name__ == "__main__":
    main()
