"""docs/doctor.md has a row for every check, in its topic, with its subsystems and a source."""

import re
from pathlib import Path

import pytest

from hostbench.doctor.check import ALL, Check
from hostbench.doctor.examination import all_checks
from hostbench.model.doctor import DoctorReport, Evidence, Finding, Place, Remedy
from hostbench.model.registry import subsystem_names
from tests.each import each

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
CHECKS = all_checks()


def rows() -> dict[str, tuple[str, re.Match[str]]]:
    """Section and row by check."""
    found: dict[str, tuple[str, re.Match[str]]] = {}
    for section in PAGE.split("\n## ")[1:]:
        title = section.splitlines()[0]
        for row in ROW.finditer(section):
            assert row[1] not in found, f"{row[1]} stands there twice"
            found[row[1]] = (title, row)
    return found


def test_the_page_has_the_checks_and_no_others() -> None:
    assert set(rows()) == {check.name for check in CHECKS}


@each("check", CHECKS, lambda check: check.name)
def test_row(check: Check) -> None:
    title, row = rows()[check.name]
    assert title.lower() == check.topic.lower()
    assert row[2] == ("all" if check.subsystems == ALL else " ".join(check.subsystems))
    assert re.search(r"\[[^]]+\]\([^)]+\)", row[4]), "a source is named"


def test_a_check_names_subsystems_that_there_are() -> None:
    named = {name for check in CHECKS for name in check.subsystems}
    assert named <= set(subsystem_names())


@pytest.mark.parametrize("model", [DoctorReport, Finding, Evidence, Remedy])
def test_the_page_names_the_fields(model: type[DoctorReport]) -> None:
    for name, field in model.model_fields.items():
        assert f"`{field.alias or name}`" in PAGE
    assert all(f"`{place}`" in PAGE for place in Place)


def test_links_into_the_repository_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / target).exists(), target
