"""Why verdicts are what they are, as sentences."""

from typing import Any

from hostbench.judge.case import grouped_reasons, reason_paragraphs, short_reasons
from hostbench.judge.trial import NOT_IDLE
from hostbench.model.result import CaseResult, Reason, Verdict


def case(workload: str, verdict: Verdict, *reasons: tuple[str, str]) -> CaseResult:
    fields: dict[str, Any] = {
        "workload": workload,
        "label": "",
        "verdict": verdict,
        "reasons": tuple(Reason(code=code, text=text) for code, text in reasons),
        "peers": (),
    }
    return CaseResult.model_construct(**fields)


def test_a_subsystem_of_which_nothing_runs_is_named_once() -> None:
    lacking = ("unsupported", "no GPU")
    skipped = [case(f"gpu.{name}", Verdict.SKIPPED, lacking) for name in ("fma", "copy", "gemm")]
    alone = case("net.tcp_rr", Verdict.SKIPPED, lacking)
    assert grouped_reasons([*skipped, alone]) == ["gpu (3 cases), net.tcp_rr, skipped: no GPU."]


def test_of_many_skipped_cases_the_first_are_named() -> None:
    late = ("time_limit", "the time of the job was over")
    others = [case(f"gpu.{name}", Verdict.SKIPPED, late) for name in ("fma", "copy")]
    skipped = [case(f"mem.w{number}", Verdict.SKIPPED, late) for number in range(8)]
    cases = [case("mem.read", Verdict.CLEAN), *skipped[:6]]
    six = "mem.w0, mem.w1, mem.w2, mem.w3, mem.w4, mem.w5"
    assert reason_paragraphs(cases) == [f"{six}, skipped: {late[1]}."]
    first = "gpu (2 cases), mem.w0, mem.w1, mem.w2, mem.w3, mem.w4"
    for sentences in (reason_paragraphs, grouped_reasons, short_reasons):
        (sentence,) = sentences([*cases, *skipped[6:], *others])
        assert sentence == f"{first} and 3 more, skipped: {late[1]}."


def test_what_many_cases_lack_is_reported_once() -> None:
    lacking = ("unsupported", "no GPU: libcuda.so.1 is not installed")
    busy = (NOT_IDLE, "the host was busy")
    cases = [
        case("cpu.fma", Verdict.NOISY, ("wide", "it is wide"), busy),
        case("gpu.fma", Verdict.SKIPPED, lacking, busy),
        case("gpu.gemm", Verdict.SKIPPED, ("unsupported", "cuBLASLt is not installed")),
        case("gpu.copy", Verdict.SKIPPED, lacking),
        case("cpu.clock", Verdict.CLEAN),
    ]
    assert reason_paragraphs(cases) == [
        "gpu.fma, gpu.copy, skipped: no GPU: libcuda.so.1 is not installed.",
        "gpu.gemm, skipped: cuBLASLt is not installed.",
        "cpu.fma, noisy: it is wide.",
        "2 cases: the host was busy.",
    ]


def test_in_a_line_each_the_worst_first() -> None:
    taken = "only 26.0 % of a CPU"
    cases = [
        case("cpu.clock", Verdict.CLEAN, ("single_trial", "one trial")),
        case("cpu.fma", Verdict.DISTURBED, ("cpu", f"4 of 5 trials, such as trial 1: {taken}")),
        case("cpu.dot", Verdict.DISTURBED, ("cpu", f"3 of 5 trials, such as trial 2: {taken}")),
    ]
    assert short_reasons(cases) == [f"2 cases: {taken}", "cpu.clock: one trial"]
