#!/usr/bin/env python3
"""Checks that the C files of each program lie in layers. Part of `make lint`, after the programs.

A program is harness/*.c, services/NAME/bench/*.c and what is generated into build/NAME/*.c. Its
x.h and x.c are one module, x. Among the modules there is no circle of includes and calls, where a
call is any symbol that one object file leaves undefined and another one defines. The harness knows
no program: it reaches one through the tables handed to it. A function that no other file uses is
static.

Usage: c_layers.py [ROOT]; it reads the objects in ROOT/build/release.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SYMBOL = re.compile(r"^(.+): (\S+) (\S)", re.MULTILINE)  # nm --format=posix: object, name, type
UNDEFINED = "Uvw"

# For each file or module those that it uses, and how: the symbol, or a few words.
Uses = Mapping[Path, Mapping[Path, str]]


def circle(uses: Uses) -> str | None:
    """One circle as "a -> b (a.c uses f) -> a (b.h includes a.h)", None where there is none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        modules: list[Path] = error.args[1][::-1]  # it lists the used module before its user
        steps = [f"{used} ({uses[user][used]})" for user, used in pairwise(modules)]
        return " -> ".join([str(modules[0]), *steps])
    return None


class Tree:
    """The C files of a checkout, and what their objects define and leave undefined."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.harness = self.files("harness/*.c")
        self.programs = {
            bench.parent.name: [
                *self.harness,
                *self.files(f"services/{bench.parent.name}/bench/*.c"),
                *self.files(f"build/{bench.parent.name}/*.c"),
            ]
            for bench in sorted(root.glob("services/*/bench"))
        }
        self.defined: dict[Path, set[str]] = defaultdict(set)
        self.undefined: dict[Path, set[str]] = defaultdict(set)
        self.read_symbols(sorted({source for of in self.programs.values() for source in of}))

    def files(self, *patterns: str) -> list[Path]:
        """Files below the root that match one of the patterns, as relative paths."""
        found = (path for pattern in patterns for path in self.root.glob(pattern))
        return sorted(path.relative_to(self.root) for path in found)

    def read_symbols(self, sources: list[Path]) -> None:
        """Fill `defined` and `undefined` from the objects of these sources."""
        objects = {str("build/release" / source.with_suffix(".o")): source for source in sources}
        if missing := [name for name in objects if not (self.root / name).is_file()]:
            sys.exit(f"{missing[0]} is missing: build the programs first (make programs)")
        listing = subprocess.run(
            ["nm", "--print-file-name", "--format=posix", *objects],
            cwd=self.root,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for name, symbol, kind in SYMBOL.findall(listing.stdout):
            if kind in UNDEFINED:
                self.undefined[objects[name]].add(symbol)
            elif kind.isupper():
                self.defined[objects[name]].add(symbol)

    def calls(self, sources: Iterable[Path]) -> Uses:
        """Which file of a program uses which other one, by its objects."""
        sources = list(sources)
        owner = {symbol: source for source in sources for symbol in self.defined[source]}
        return {
            source: {owner[name]: name for name in sorted(self.undefined[source] & owner.keys())}
            for source in sources
        }

    def includes(self, sources: Iterable[Path]) -> Uses:
        """Which file of a program includes which header that stands beside it or in harness/."""
        folders = {source.parent for source in sources}
        known = set(self.files(*(f"{folder}/*.[ch]" for folder in folders)))
        uses: dict[Path, dict[Path, str]] = {}
        for path in sorted(known):
            names = INCLUDE.findall((self.root / path).read_text())
            choices = [(path.parent / name, Path("harness") / name) for name in names]
            found = [next((p for p in pair if p in known), None) for pair in choices]
            uses[path] = {header: header.name for header in found if header}
        return uses

    def modules(self, sources: Iterable[Path]) -> Uses:
        """Which module of a program uses which other one, x.h and x.c being the module x."""
        sources = list(sources)
        uses: dict[Path, dict[Path, str]] = defaultdict(dict)
        for verb, graph in (("includes", self.includes(sources)), ("uses", self.calls(sources))):
            for user, used_by_it in graph.items():
                for used, name in used_by_it.items():
                    if used.with_suffix("") != user.with_suffix(""):
                        how = f"{user.name} {verb} {name}"
                        uses[user.with_suffix("")][used.with_suffix("")] = how
        return uses

    def needlessly_public(self) -> Iterator[tuple[Path, str]]:
        """Symbols that no other object needs, and no other C file or test names.

        The text is searched too, for what only another architecture or a test needs.
        """
        texts = self.files("harness/**/*.c", "services/**/*.c", "services/*/tests/*.py")
        words = {path: set(re.findall(r"\w+", (self.root / path).read_text())) for path in texts}
        for source, symbols in self.defined.items():
            home = Path() if source in self.harness else source.parents[1]
            others = [of for path, of in self.undefined.items() if path != source]
            others += [of for path, of in words.items() if path != source and home in path.parents]
            for symbol in sorted(symbols.difference({"main"}, *others)):
                yield source, symbol


def problems(tree: Tree) -> Iterator[str]:
    """Each thing that is wrong, in one line; of circles the first, for others may go with it."""
    graphs = (tree.modules(sources) for sources in [tree.harness, *tree.programs.values()])
    if found := next(filter(None, map(circle, graphs)), None):
        yield f"a circle of modules: {found}"
    for sources in tree.programs.values():
        uses = tree.calls(sources)
        for user in tree.harness:
            for used, symbol in uses[user].items():
                if used not in tree.harness:
                    yield f"{user} uses {symbol} of {used}: pass it in the program's table"
    for source, symbol in tree.needlessly_public():
        yield f"{source}: no other file uses {symbol}: make it static, or remove it"


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    sys.exit("\n".join(problems(Tree(root))) or None)
