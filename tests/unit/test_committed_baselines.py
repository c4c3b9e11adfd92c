"""Every baseline that the package ships is computed again; figures above limits are refused."""

import json

from hostbench.decisions.baseline_files import (
    FOLDER,
    PATTERN,
    SCHEMA_FILE,
    parsed,
    read_baseline,
)
from hostbench.docs import baseline_schema
from hostbench.model.baseline import HOSTS_LEAST
from hostbench.programs.program import CHECKOUT

HERE = CHECKOUT / FOLDER
FILES = sorted(path for path in HERE.glob(PATTERN) if path.name != SCHEMA_FILE)


def test_the_schema_is_that_of_the_model() -> None:
    written = (HERE / SCHEMA_FILE).read_text()
    assert written == baseline_schema(), "write it again with: python -m hostbench.docs"
    assert json.loads(written)["properties"]["kind"]["const"] == "hostbench.baseline"


def test_every_file_holds() -> None:
    for path in FILES:
        assert len(read_baseline(path).hosts) >= HOSTS_LEAST, path


def test_each_model_has_one_file() -> None:
    keys = [parsed(path).key for path in FILES]
    assert len(keys) == len(set(keys))


def test_the_readme_says_how_many_there_are() -> None:
    says_none = "There is none here yet" in (HERE / "README.md").read_text()
    assert says_none == (not FILES)
