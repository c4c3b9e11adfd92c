"""Write the tables of this folder into README and docs/comparing.md, each between its two
comments."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.programs import ROOT
from benchmarks.tables import README

COMPARING = ROOT / "docs/comparing.md"
# The lines of each table, by page and by the name in its comments.
Tables = Mapping[Path, Mapping[str, Iterable[str]]]


def show(tables: Tables) -> None:
    """Print the tables of README, or with --readme write all tables into their pages."""
    if "--readme" in sys.argv:
        if len(sys.argv) > 2:
            raise SystemExit("--readme writes the whole tables of what is kept; give it alone")
        for page, own in tables.items():
            page.write_text(written(page.read_text(), own))
        return
    for lines in tables[README].values():
        for line in lines:
            print(line, flush=True)
        print()


def written(page: str, tables: Mapping[str, Iterable[str]], room: str = "decisions") -> str:
    """Return the page with these tables in their places, which name `room`."""
    for name, lines in tables.items():
        begin, end = f"<!-- {room}: {name} -->\n", f"<!-- end of {room}: {name} -->"
        before, _, rest = page.partition(begin)
        if end not in rest:
            raise SystemExit(f"the page has no place for a table: {begin.strip()} … {end}")
        page = (
            before + begin + "".join(f"{line}\n" for line in lines) + end + rest.partition(end)[2]
        )
    return page
