"""What a workload needs of a container: the table in docs/cluster.md beside the registry, the
programs' tables, the checks of `hostbench doctor`, and the capabilities that the sources name."""

import re

from hostbench.doctor.examination import all_checks
from hostbench.model.registry import built_in_names
from hostbench.programs.program import load_programs
from tests.machine_code import ROOT

PAGE = ROOT / "docs/cluster.md"
HEAD = "| workloads | what they can use |"
# Of the kernel's counters, which hostbench does not need; CAP_SYS_ADMIN includes it.
OF_OTHERS = {"CAP_PERFMON", "CAP_SYS_ADMIN"}
# A file of a service or of the harness, but not its tests.
SOURCES = ("services/*/**/*.[ch]", "services/*/**/*.py", "harness/*.[ch]", "hostbench/**/*.py")


def rows() -> list[list[str]]:
    lines = PAGE.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(HEAD))
    found: list[list[str]] = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return found
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    raise AssertionError("the table does not end")


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_it_has_every_subsystem_and_only_parameters_that_there_are() -> None:
    tables = {name: one.table for name, one in load_programs(built_in_names()).items()}
    seen = set()
    for workloads, *_ in rows():
        subsystem, *named = words(workloads)
        seen.add(subsystem)
        params = [param for one in tables[subsystem].workloads for param in one.params]
        for text in named if "peer" not in workloads else ():
            name, _, value = text.partition("=")
            alike = [param for param in params if param.name == name]
            assert alike, text
            assert not value or any(value in (param.choices or ()) for param in alike), text
    assert seen == set(built_in_names())


def test_its_checks_are_those_of_the_doctor() -> None:
    known = {check.name: check for check in all_checks()}
    found = {(words(row[0])[0], name) for row in rows() for name in words(row[3])}
    assert len(found) >= 4
    for subsystem, name in found:
        assert known[name].touches(subsystem), name


def test_every_capability_that_the_sources_name_is_in_it() -> None:
    named: set[str] = set()
    for pattern in SOURCES:
        for path in ROOT.glob(pattern):
            if "tests" not in path.relative_to(ROOT).parts:
                text = path.read_text(errors="replace").upper()
                named |= set(re.findall(r"\bCAP_(?:SYS|IPC|NET|PERF)[A-Z_]*\b", text))
    listed = {name for row in rows() for name in words(row[1]) if name.startswith("CAP_")}
    assert listed == named - OF_OTHERS
