"""Parameters are refused before a program starts: the value, what is allowed, the remedy."""

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.events import ParamValue
from hostbench.programs.params import check_params, check_value, cpu_ranges
from tests.unit.records import FMA, param

ALLOWED_CPUS = (2, 3, 4, 8)


def checked(**given: ParamValue) -> dict[str, ParamValue]:
    return check_params(FMA, given, ALLOWED_CPUS)


def refusal(**given: ParamValue) -> str:
    with pytest.raises(UsageError) as caught:
        checked(**given)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("value", ["0", 0, "-1", -1, "1000000", 4097, "9" * 5000])
def test_threads_out_of_range(value: ParamValue) -> None:
    message = refusal(threads=value)
    assert str(value)[:20] in message and "1 to 4096 or all" in message


@pytest.mark.parametrize("value", ["abc", "", "2.5", 2.5, " 2", "0x2", "1e2", "1_0", "２"])
def test_threads_that_are_no_whole_number(value: ParamValue) -> None:
    message = refusal(threads=value)
    assert repr(value) in message and "whole number" in message and "1 to 4096 or all" in message


@pytest.mark.parametrize("value", ["0", 0, -1, "-1", "604801", 1e300])
def test_duration_out_of_range(value: ParamValue) -> None:
    message = refusal(duration_s=value)
    assert repr(value) in message and "0.01 to 604800 s" in message


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1s", "", "1e999", float("nan")])
def test_duration_that_is_no_finite_number(value: ParamValue) -> None:
    message = refusal(duration_s=value)
    assert repr(value) in message and "0.01 to 604800 s" in message


@pytest.mark.parametrize("value", [0, "0", 2 * 10**18, "99999999999999999999"])
def test_work_out_of_range(value: ParamValue) -> None:
    message = refusal(work=value)
    assert str(value) in message and "1 to 1e+18 operation" in message


def test_unknown_choice_names_the_nearest() -> None:
    message = refusal(dtype="fp23")
    assert "'fp23'" in message and "did you mean" in message and "fp64 or fp32" in message


def test_unknown_parameter_names_the_nearest() -> None:
    message = refusal(thread=2)
    assert "'thread'" in message and "did you mean 'threads'?" in message and "dtype" in message


def test_a_parameter_of_the_host_is_never_taken_from_a_request() -> None:
    message = refusal(lifeline_fd=3)
    assert "lifeline_fd" in message and "operator" in message and "threads" in message


def test_fixed_time_and_fixed_work_exclude_one_another() -> None:
    message = refusal(duration_s=1, work=1000)
    assert "duration_s" in message and "work" in message and "leave out" in message


@pytest.mark.parametrize("value", ["x", "", "2-", "3-2", "2,,3", "2;3", "-2"])
def test_cpus_that_are_no_list(value: str) -> None:
    message = refusal(cpus=value)
    assert repr(value) in message and "2-4,8" in message


@pytest.mark.parametrize(
    ("value", "outside"), [("0", 0), ("2-8", 5), ("0-999999999", 0), ("2,9", 9), (7, 7)]
)
def test_cpus_outside_the_cpuset(value: ParamValue, outside: int) -> None:
    message = refusal(cpus=value)
    assert f"CPU {outside}" in message and "2-4,8" in message


def test_cpus_named_twice() -> None:
    assert "twice" in refusal(cpus="2,2-3")


DEVICE = param("device", type="text", default="auto", min=None, max=None)


@pytest.mark.parametrize("value", ["a/b", "", "x" * 129, "a b", "GPU\n", 0.5, "é"])
def test_texts_that_are_no_name(value: ParamValue) -> None:
    with pytest.raises(UsageError) as caught:
        check_value(DEVICE, value, ALLOWED_CPUS)
    message = caught.value.message
    assert "device" in message and "a name of 1 to 128 of A-Z" in message and "\n" not in message


def test_all_names_are_several_cases() -> None:
    with pytest.raises(UsageError, match=r"^device all stands for several cases; .* in grid"):
        check_value(DEVICE, "all", ALLOWED_CPUS)


@pytest.mark.parametrize(
    ("value", "name"), [(0, "0"), ("1", "1"), ("GPU-0a:1.2_b", "GPU-0a:1.2_b"), ("x" * 128,) * 2]
)
def test_a_name_is_a_text_whatever_it_was_written_as(value: ParamValue, name: str) -> None:
    assert check_value(DEVICE, value, ALLOWED_CPUS) == name


def test_what_is_accepted_has_its_own_type() -> None:
    assert checked(threads="4", duration_s="0.5", dtype="fp32", cpus="2-4,8") == {
        "threads": 4,
        "duration_s": 0.5,
        "dtype": "fp32",
        "cpus": "2-4,8",
    }
    assert checked(threads="all", work=1e6) == {"threads": "all", "work": 1000000}


@pytest.mark.parametrize(
    ("cpus", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 8], "0-2,8"), ([5, 4, 1], "1,4-5")]
)
def test_cpu_ranges(cpus: list[int], text: str) -> None:
    assert cpu_ranges(cpus) == text
