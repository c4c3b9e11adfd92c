"""A suite that cannot be used is refused in one line: where, the value, what is allowed."""

import os
from pathlib import Path

import pytest

from hostbench.plan.suite import SuiteError, built_in_suites, find_suite, load_suite
from tests.each import each

GOOD = """
name: mine
description: for this test
idle: {policy: fail, timeout_s: 5, per: case}
repeats: {min_trials: 2, max_trials: 4}
cases:
  - workload: cpu.fma
    params: {duration_s: 0.5}
    grid: {dtype: [fp64, fp32], isa: all, threads: [1, all]}
  - workload: cpu.clock
    repeats: {min_trials: 1, max_trials: 1}
    label: the clock
"""
CASE = "cases:\n  - workload: cpu.fma\n"


def refusal(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    return caught.value.message.removeprefix(str(path))


def test_a_good_suite(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    suite = load_suite(path)
    assert suite.idle.policy == "fail"
    assert suite.cases[0].grid["isa"] == "all"
    assert suite.cases[0].repeats.applied_to(suite.repeats) == suite.repeats
    assert suite.cases[1].repeats.applied_to(suite.repeats).max_trials == 1
    assert suite.repeats.target_half_width is None


@each(
    ("content", "parts"),
    [
        ("", ["is empty", "name and cases"]),
        ("# nothing\n", ["is empty", "name and cases"]),
        ("- a\n", ["['a']", "mapping"]),
        ("name: mine\npeers: maybe\n" + CASE, [":2:", "'maybe'", "give auto, none, or a list"]),
        ("name: mine\npeers: []\n" + CASE, [":2:", "[]", "at least one"]),
        ("name: mine\npeers: [1]\n" + CASE, [":2:", "1 is not allowed", "give text"]),
        ("name: mine\n" + CASE + "    peers: sysbench\n", [":4:", "cases[0].peers", "such as"]),
        ("name: [\n", [":2:", "expected"]),
        ("name: mine\ncases: &x\n  - *x\n", [":2:", "anchor &x", "write the value out"]),
        ("name: mine\ncases: *x\n", [":2:", "alias *x", "write the value out"]),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", [":1:", "anchor &a"]),
        ("name: mine\nname: other\n" + CASE, [":2:", "'name'", "second time"]),
        (
            "name: mine\ncases:\n  - worklaod: cpu.fma\n",
            [":3:", "cases[0]", "'worklaod'", "did you mean 'workload'?"],
        ),
        ("name: mine\nnmae: x\n" + CASE, [":2:", "'nmae'", "did you mean 'name'?"]),
        (
            "name: mine\nidle:\n  polcy: fail\n" + CASE,
            [":3:", "'polcy'", "did you mean 'policy'?", "timeout_s"],
        ),
        ("name: mine\nrepeats: {trials: 3}\n" + CASE, [":2:", "'trials'", "min_trials"]),
        ("name: mine\n", ["cases", "missing"]),
        ("name: mine\ncases: []\n", [":2:", "cases", "at least one"]),
        ("name: mine\ncases: 3\n", [":2:", "cases", "3"]),
        ("name: Mine Own\n" + CASE, [":1:", "'Mine Own'", "lower-case"]),
        ("name: ../x\n" + CASE, [":1:", "'../x'", "lower-case"]),
        ("name: 2020-01-01\n" + CASE, [":1:", "name", "give text"]),
        ("name: mine\nidle: {policy: maybe}\n" + CASE, [":2:", "'maybe'", "'flag'"]),
        ("name: mine\nidle: {timeout_s: -1}\n" + CASE, [":2:", "-1", "give 0 or more"]),
        ("name: mine\nidle: {timeout_s: .nan}\n" + CASE, [":2:", "nan", "finite"]),
        ("name: mine\nidle: {timeout_s: .inf}\n" + CASE, [":2:", "inf", "finite"]),
        ("name: mine\nrepeats: {min_trials: 0}\n" + CASE, [":2:", "0", "give 1 or more"]),
        ("name: mine\nrepeats: {min_trials: two}\n" + CASE, [":2:", "'two'", "whole number"]),
        (
            "name: mine\nrepeats: {min_trials: 9, max_trials: 2}\n" + CASE,
            [":2:", "9", "2", "raise max_trials"],
        ),
        (
            "name: mine\nrepeats: {min_trials: 3}\n" + CASE + "    repeats: {max_trials: 2}\n",
            ["cases[0].repeats", "min_trials 3 is above max_trials 2"],
        ),
        (
            "name: mine\n" + CASE + "    repeats: {target_half_width: 2}\n",
            ["cases[0].repeats.target_half_width", "less than 1"],
        ),
        (
            "name: mine\n" + CASE + "    params: {threads: yes}\n",
            [":4:", "threads", "true", "number"],
        ),
        ("name: mine\n" + CASE + "    params: {threads: [1, 2]}\n", [":4:", "threads", "[1, 2]"]),
        ("name: mine\n" + CASE + "    params: {duration_s: .nan}\n", [":4:", "nan", "finite"]),
        ("name: mine\n" + CASE + "    grid: {isa: avx2}\n", [":4:", "isa", "'avx2'"]),
        ("name: mine\n" + CASE + "    grid: {isa: []}\n", [":4:", "isa", "at least one"]),
        ("name: !!python/object:os.system x\n", [":1:", "python/object"]),
        ("name: mine\ncases: !!set {a, b}\n", [":2:", "tag", "remove it"]),
        ("name: 2020-13-45\n", [":1:", "'2020-13-45'"]),
        ("? [a]\n: b\n", [":1:", "key", "word"]),
        ("--- a\n--- b\n", [":2:", "document"]),
        ("name: a\x00b\n", ["x0000", "not allowed"]),
        (b"name: m\xff\n", [":1:", "0xff", "UTF-8"]),
        (b"\x00\x01\x02", ["not allowed"]),
        ("[" * 5000, ["nested too deeply"]),
        ("x: " + "a" * (1 << 20), ["1048576 bytes", "grids"]),
        ("name: mine\nrepeats: {min_trials: " + "9" * 5000 + "}\n", [":2:", "4300"]),
    ],
)
def test_bad_content(tmp_path: Path, content: str | bytes, parts: list[str]) -> None:
    message = refusal(tmp_path, content)
    for part in parts:
        assert part in message


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"No such file.*readable \.yaml"):
        load_suite(tmp_path / "none.yaml")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="Is a directory"):
        load_suite(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.touch(mode=0)
    with pytest.raises(SuiteError, match="Permission denied"):
        load_suite(path)


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_suite(path).name == "mine"


def test_every_suite_of_the_checkout_loads_and_is_found_by_name() -> None:
    for name, path in built_in_suites().items():
        assert find_suite(name) == path
        assert load_suite(path).description
    assert {"quick", "cpu-600-samples"} <= set(built_in_suites())


def test_unknown_name_names_the_nearest() -> None:
    with pytest.raises(SuiteError, match=r"'quik'.*did you mean 'quick'.*path of a \.yaml"):
        find_suite("quik")


def test_suites_directory_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "own.yaml").write_text(GOOD)
    monkeypatch.setenv("HOSTBENCH_SUITES", str(tmp_path))
    assert list(built_in_suites()) == ["deep/own"]
