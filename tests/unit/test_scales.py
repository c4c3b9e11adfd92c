"""A suite with scales is reduced to one of them before anything is planned."""

import re
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.published import Match, Published, PublishedHost, PublishedTable
from hostbench.model.suite import RepeatsChange, Scale, ScaleChange, Suite, SuiteCase
from hostbench.plan.suite import SuiteError, load_suite

SCALED = """
name: scaled
repeats: {min_trials: 2, max_trials: 9, target_half_width: 0.1}
peers: auto
scales:
  quick:
    params: {duration_s: 0.3, warmup_s: 0, block_bytes: 64}
    repeats: {min_trials: 3, max_trials: 3}
    peers: none
  full:
    description: the report's own totals
    params: {warmup_s: 1.5}
    repeats: {target_half_width: 0.05}
cases:
  - workload: cpu.add_sub
    params: {dtype: int32}
    grid: {threads: [1, 2]}
    scales:
      full: {params: {work: 1000}, repeats: {min_trials: 1, max_trials: 1}, timeout_s: 900}
  - workload: mem.naive_copy
    params: {warmup_s: 0.1}
    grid: {block_bytes: [8, 8192], threads: [1, 2]}
    peers: [mbw]
    scales:
      quick: {params: {block_bytes: 8}, peers: [stress-ng]}
      full: {params: {total_bytes: 100}}
"""
ROW = "    rows: [[int, 1, 2.5]]\n"
PUBLISHED = """
published:
  title: A report
  host: {name: a node, cpu: a CPU, cpus: 2}
  tables:
  - name: cpu-speed
    title: Speed of the CPU
    subsystem: cpu
    source: table 1
    unit: op/s
    key: [threads]
    series:
      int:
        ours: {workload: cpu.add_sub, params: {dtype: int32}}
        naive: {workload: cpu.naive_operations}
    columns: [mean]
    trusted: [{title: LINPACK, published: 3.5e+10, unit: FLOP/s}]
    remarks: [it does not add up]
"""


def written(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    return path


def loaded(tmp_path: Path, content: str = SCALED) -> Suite:
    return load_suite(written(tmp_path, content))


def refusal(tmp_path: Path, content: str) -> str:
    with pytest.raises(SuiteError) as caught:
        load_suite(written(tmp_path, content))
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_first_scale_is_the_default(tmp_path: Path) -> None:
    suite = loaded(tmp_path)
    assert suite.default_scale == "quick"
    assert suite.scaled() == suite.scaled("quick")
    assert suite.scaled().scale == "quick"


def test_a_reduced_suite_is_a_plain_one(tmp_path: Path) -> None:
    for name in ("quick", "full"):
        suite = loaded(tmp_path).scaled(name)
        assert suite.scales == {}
        assert all(case.scales == {} for case in suite.cases)
        assert suite.scaled() is suite
        # What is stored in a journal reads as it was.
        assert Suite.model_validate_json(suite.model_dump_json()) == suite


def test_the_entry_has_the_last_word_on_parameters(tmp_path: Path) -> None:
    first, second = loaded(tmp_path).scaled("quick").cases
    assert first.params == {"dtype": "int32", "duration_s": 0.3, "warmup_s": 0, "block_bytes": 64}
    assert second.params == {"warmup_s": 0.1, "duration_s": 0.3, "block_bytes": 8}
    assert second.grid == {"threads": [1, 2]}


def test_a_fixed_work_has_no_duration_of_the_suite() -> None:
    for work in ("work", "total_bytes"):
        for place in ("params", "grid", "scales"):
            suite = Suite.model_validate(one_entry(work, place))
            (entry,) = suite.scaled("quick").cases
            assert "duration_s" not in entry.params, (work, place)
            assert entry.params["warmup_s"] == 0


def one_entry(work: str, place: str) -> dict[str, Any]:
    places: dict[str, Any] = {
        "params": {work: 5},
        "grid": {work: [5, 6]},
        "scales": {"quick": {"params": {work: 5}}},
    }
    scale = {"params": {"duration_s": 0.3, "warmup_s": 0}}
    case = {"workload": "cpu.add_sub", place: places[place]}
    return {"name": "mine", "scales": {"quick": scale}, "cases": (case,)}


def test_a_duration_of_the_entry_itself_stays() -> None:
    content = one_entry("total_bytes", "params")
    content["cases"][0]["params"]["duration_s"] = 9.0
    (entry,) = Suite.model_validate(content).scaled().cases
    assert entry.params["duration_s"] == 9.0


def test_repeats_and_peers_of_a_scale(tmp_path: Path) -> None:
    quick, full = (loaded(tmp_path).scaled(name) for name in ("quick", "full"))
    assert (quick.repeats.min_trials, quick.repeats.max_trials) == (3, 3)
    assert quick.repeats.target_half_width == 0.1
    assert (full.repeats.min_trials, full.repeats.max_trials) == (2, 9)
    assert full.repeats.target_half_width == 0.05
    assert (quick.peers, full.peers) == ("none", "auto")
    assert full.cases[0].repeats == RepeatsChange(min_trials=1, max_trials=1)
    assert full.cases[0].timeout_s == 900
    assert quick.cases[0].timeout_s is None
    assert (quick.cases[0].peers, quick.cases[1].peers) == (None, ["stress-ng"])
    assert full.cases[1].peers == ["mbw"]


def test_unknown_scale(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"scaled has no scale 'fulll'; did you mean 'full'\?"):
        loaded(tmp_path).scaled("fulll")
    with pytest.raises(UsageError, match="give quick or full"):
        loaded(tmp_path).scaled("x")


def test_a_suite_without_scales() -> None:
    plain = Suite(name="plain", cases=(SuiteCase(workload="cpu.fma"),))
    assert plain.scaled() is plain
    with pytest.raises(UsageError, match="suite plain has no scales, but 'full' is given"):
        plain.scaled("full")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (
            "      full: {params: {work",
            "      ful: {params: {work",
            ["cases[0]", "'ful'", "'full'"],
        ),
        ("name: scaled", "name: scaled\nscale: quick", [":3:", "'scale'", "'scales'", "--scale"]),
        ("peers: none", "idle: force", [":9:", "scales.quick", "'idle'", "repeats"]),
        ("timeout_s: 900", "timeout: 900", [":19:", "'timeout'", "'timeout_s'"]),
        ("  quick:\n    params", "  Quick:\n    params", [":6:", "'Quick'", "lower-case"]),
        ("min_trials: 3, max", "min_trials: 4, max", ["scales.quick.repeats", "4", "3"]),
        ("max_trials: 1}", "max_trials: 0}", ["cases[0].repeats.max_trials", "at scale full"]),
        ("{duration_s: 0.3,", "{duration_s: [0.3],", [":7:", "duration_s", "[0.3]"]),
        ("cases:", "".join(f"  s{n}: {{}}\n" for n in range(7)) + "cases:", [":5:", "at most 8"]),
        ("{warmup_s: 1.5}", "1.5", [":12:", "scales.full.params", "mapping"]),
    ],
)
def test_bad_scales(tmp_path: Path, old: str, new: str, parts: list[str]) -> None:
    assert old in SCALED
    message = refusal(tmp_path, SCALED.replace(old, new))
    for part in parts:
        assert part in message


def test_a_published_section(tmp_path: Path) -> None:
    content = SCALED + PUBLISHED + ROW.replace("2.5]", "null]")
    suite = loaded(tmp_path, content)
    assert suite.published is not None
    (table,) = suite.published.tables
    assert table.rows == (("int", 1, None),)
    assert table.trusted[0].published == 3.5e10
    assert suite.scaled("full").published == suite.published


def test_repeats_of_a_row_are_a_list(tmp_path: Path) -> None:
    content = (SCALED + PUBLISHED + ROW).replace("[mean]", "[repeats]").replace("2.5", "[2.5, 3]")
    published = loaded(tmp_path, content).published
    assert published is not None
    assert published.tables[0].rows == (("int", 1, [2.5, 3]),)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("2.5]]", "2.5, 3]]", ["rows[0]", "cpu-speed", "4 cells", "3 are needed", "threads, mean"]),
        ("[int, 1", "[double, 1", ["rows[0]", "'double'", "int"]),
        ("2.5]]", "[2.5]]]", ["rows[0]", "mean", "[2.5]", "one number"]),
        # YAML takes a number without point and sign for a word.
        ("2.5]]", "1e9]]", ["rows[0]", "mean", "'1e9'", "1.5e+9"]),
        ("columns: [mean]", "columns: [middle]", ["'middle'", "mean"]),
        ("source: table 1", "sauce: table 1", ["'sauce'", "did you mean 'source'?"]),
        ("cpus: 2}", "cpu_count: 2}", ["published.host", "'cpu_count'", "cpus"]),
        ("ours: {workload", "ours: {wrkload", ["series.int.ours", "'wrkload'", "'workload'"]),
        ("unit: FLOP/s}", "units: FLOP/s}", ["trusted[0]", "'units'", "'unit'"]),
        ("key: [threads]", "key: [Threads]", ["key[0]", "'Threads'", "underscores"]),
        ("key: [threads]", "key: threads", ["key", "'threads'", "give a list"]),
    ],
)
def test_bad_published(tmp_path: Path, old: str, new: str, parts: list[str]) -> None:
    content = SCALED + PUBLISHED + ROW
    assert old in content
    message = refusal(tmp_path, content.replace(old, new))
    for part in parts:
        assert part in message, message


PAGE = Path(__file__).parents[2] / "docs" / "suites.md"


def test_the_examples_of_the_page_are_suites(tmp_path: Path) -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(examples) == 3
    plain, scaled, published = examples
    assert loaded(tmp_path, plain).scale is None
    assert loaded(tmp_path, scaled).scaled("full").cases[0].timeout_s == 7200
    assert loaded(tmp_path, SCALED + published).published is not None


@pytest.mark.parametrize(
    "model", [Suite, SuiteCase, Scale, ScaleChange, Published, PublishedHost, PublishedTable, Match]
)
def test_the_page_names_every_key(model: type[Any]) -> None:
    page = PAGE.read_text()
    # `scale` is what a result says, not a file.
    for name in model.model_fields:
        assert re.search(rf"\b{name}\b", page), name
