"""`pyproject.toml` has the version. The package, the changelog, and the names of wheels and images
in pages and charts have the same one; the chart's own is in tests/fleet/test_chart.py."""

import re
import subprocess
import tomllib
from pathlib import Path

from hostbench import __version__

ROOT = Path(__file__).parents[2]
# The name of a wheel or an image, and what `hostbench --version` prints.
STATED = re.compile(r"\bhostbench[-: ](\d+\.\d+\.\d+)\b")
RELEASED = re.compile(r"^## \[(\d.*)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_package_has_the_version_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert __version__ == project["version"]


def test_the_changelog_has_the_version_with_its_day() -> None:
    releases = RELEASED.findall((ROOT / "CHANGELOG.md").read_text())
    assert releases[0][0] == __version__
    days = [day for _, day in releases]
    assert days == sorted(days, reverse=True)


def test_pages_and_charts_name_wheels_and_images_of_this_version() -> None:
    named = ("*.md", "charts", "compose*.yaml", ":!CHANGELOG.md", ":!benchmarks")
    listed = subprocess.check_output(["git", "ls-files", "--", *named], cwd=ROOT, text=True)
    stated = [
        (name, version)
        for name in listed.splitlines()
        if (ROOT / name).is_file()  # some files of the chart are links to folders
        for version in STATED.findall((ROOT / name).read_text())
    ]
    assert len(stated) > 5
    assert [one for one in stated if one[1] != __version__] == []
