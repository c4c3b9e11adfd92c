"""The page has each container of compose.yaml, and its table of what can go wrong names tests that
are there."""

import re

import yaml

from tests.machine_code import ROOT

HEADING = "## What can go wrong, and what happens then"
CONTAINERS = "## What runs"


def test_each_container_has_its_row() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition(CONTAINERS)[2].partition("\n## ")[0]
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert set(re.findall(r"^\| ([a-z]+) \|", section, re.MULTILINE)) - {"container"} == set(
        compose["services"]
    )


def test_each_row_of_what_can_go_wrong_has_its_tests() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition(HEADING)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    named = set()
    for row in rows:
        file = ""
        for word in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1]):
            path, _, test = word.rpartition("::") if "::" in word else ("", "", word)
            if test.endswith(".py"):
                path, test = test, ""
            file = path or file
            source = ROOT / "tests" / file
            assert source.is_file(), (file, row)
            named.add(file)
            assert not test or f"def {test}(" in source.read_text(), (word, row)
        assert file, f"a row without a test: {row}"
    about = {
        f"faults/{one.name}"
        for pattern in ("test_stack_*.py", "test_strangers.py", "test_power_cuts.py")
        for one in (ROOT / "tests" / "faults").glob(pattern)
    }
    # What a disk's own tests hold stands with the disk.
    assert about - named == {"faults/test_stack_disk.py"}
