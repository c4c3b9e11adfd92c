"""Every baseline that the package ships is computed again; figures above limits are refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.base.place import CHECKOUT
from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import (
    FOLDER,
    PATTERN,
    SCHEMA_FILE,
    content_of,
    read_baseline,
)
from hostbench.docs import baseline_schema
from hostbench.model.baseline import HOSTS_LEAST, Baseline, HostKey
from tests.unit.baseline_documents import of_hosts

HERE = CHECKOUT / FOLDER
README = HERE / "README.md"
NONE = "The folder has no file."


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(PATTERN) if path.name != SCHEMA_FILE)


def faults(folder: Path) -> Iterator[str]:
    """What a pull request is refused for, a line each."""
    known: dict[HostKey, str] = {}
    for path in files(folder):
        try:
            one = read_baseline(path)
        except UsageError as error:
            yield error.message
            continue
        if len(one.hosts) < HOSTS_LEAST:
            yield (
                f"{path} has {len(one.hosts)} hosts, and {HOSTS_LEAST} are the least; "
                "put it together with those of others with: hostbench baseline merge"
            )
        if (other := known.setdefault(one.key, path.name)) != path.name:
            yield (
                f"{path} is of the same model as {other}, {one.key.words}; put both into one with: "
                "hostbench baseline merge"
            )


def test_the_schema_is_that_of_the_model() -> None:
    written = (HERE / SCHEMA_FILE).read_text()
    assert written == baseline_schema(), "write it again with: python -m hostbench.docs"
    assert json.loads(written)["properties"]["kind"]["const"] == "hostbench.baseline"


def test_every_file_holds() -> None:
    found = list(faults(HERE))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_the_readme_says_how_many_there_are() -> None:
    if (NONE in README.read_text()) == bool(files(HERE)):
        pytest.fail(f'{README} says "{NONE}" where there is one, or does not', pytrace=False)


def made(*factors: float) -> Baseline:
    return made_of([measured_job(one) for one in of_hosts(factors)])


def test_made_up_files_are_refused(tmp_path: Path) -> None:
    def refused(**named: Baseline) -> list[str]:
        for path in files(tmp_path):
            path.unlink()
        for name, one in named.items():
            (tmp_path / f"{name}.json").write_bytes(content_of(one))
        return list(faults(tmp_path))

    sound = made(1.0, 1.004, 0.997, 1.002, 0.999)
    assert refused(sound=sound) == []
    (few,) = refused(few=made(1.0, 1.004))
    assert "few.json has 2 hosts, and 5 are the least; put it together" in few
    (twice,) = refused(one=sound, two=sound)
    assert "two.json is of the same model as one.json, Intel" in twice
    (above,) = refused(above=made(1.5, 1.504, 1.497, 1.502, 1.499))
    assert "above.json is not a sound baseline: " in above
    assert " is better than its limit of " in above and above.count("\n") == 0
