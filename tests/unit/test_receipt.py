"""The first screen: is this host as it should be, and what to look at."""

import io
from pathlib import Path

import pytest

from hostbench.cli.render import show_result
from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.decisions.hostcheck import check_host
from hostbench.decisions.receipt import receipt_of
from hostbench.judge.between_jobs import VARIES
from hostbench.judge.condition import BY_CARD
from hostbench.judge.statistics import describe
from hostbench.model.baseline import Baseline, HostWord, Receipt
from hostbench.model.host import CgroupLimits, Channels, Frequency, Memory
from hostbench.model.result import (
    BetweenJobs,
    CaseResult,
    Condition,
    ConditionState,
    Reason,
    ResultDocument,
    Verdict,
)
from hostbench.page.job import report_of
from hostbench.page.output import Format, rendered
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from services.gpu.published import CYCLES
from tests.unit.baseline_documents import of_host, of_hosts, whole
from tests.unit.course_documents import course_run
from tests.unit.gpu_documents import gpu_run
from tests.unit.memory_documents import memory_run
from tests.unit.report_documents import stored

SOUND = (0.97, 0.98, 0.99, 0.985, 0.975, 0.99, 0.992)


def baseline() -> Baseline:
    return made_of([measured_job(one) for one in of_hosts(SOUND)])


def receipt(document: ResultDocument, known: Baseline | None = None) -> Receipt:
    return receipt_of(document, check_host([measured_job(document)], known))


def with_cases(document: ResultDocument, **changes: object) -> ResultDocument:
    """The document, with every case so."""
    cases = tuple(case.model_copy(update=changes) for case in document.cases)
    return document.model_copy(update={"cases": cases})


def quiet(document: ResultDocument) -> ResultDocument:
    return with_cases(document, condition=Condition(state=ConditionState.QUIET))


# ---- the answer ----


def test_a_host_like_the_others() -> None:
    found = receipt(quiet(of_host(51, 0.98)), baseline())
    assert found.word is HostWord.AS_EXPECTED and not found.items
    assert found.answer == (
        "Yes: all 12 headline figures are as expected from 7 other hosts of this model (error "
        "rate: at most 1 % of sound hosts are called low)."
    )


def test_a_host_that_is_low() -> None:
    found = receipt(quiet(of_host(50, 0.9, only="cpu.fma")), baseline())
    assert found.word is HostWord.LOW
    assert found.answer.startswith("No: 12 of 12 headline figures are worse than expected from 7 ")
    (item,) = found.items
    assert item.text.startswith("cpu.fma ") and "(7 hosts, 95/95): low, and" in item.text
    assert item.evidence.startswith("Look at the clock: turbo, heat")
    assert item.lost_ratio == pytest.approx(1 - 0.9 / 0.985, abs=0.005)


def test_a_host_that_may_be_low() -> None:
    found = receipt(quiet(of_host(52, 0.947)), baseline())
    assert found.word is HostWord.SUSPECT
    assert found.answer.endswith("Measure again.") and "5 %" in found.answer
    assert not any(item.is_fault for item in found.items)


def test_without_a_baseline_the_limits_are_the_reference() -> None:
    assert receipt(quiet(whole())).answer == (
        "No fault found; cpu reaches 98.4 % of its limit. There is no baseline of this model."
    )


def test_without_a_limit_there_is_no_reference() -> None:
    document = quiet(memory_run(limits=False, peers=False))
    found = receipt(document)
    assert found.word is HostWord.NO_REFERENCE
    assert found.answer == (
        "No reference: no limit of mem is known, and there is no baseline of this model."
    )


def test_a_job_without_a_figure_tells_nothing() -> None:
    document = with_cases(quiet(whole()), verdict=Verdict.DISTURBED)
    assert receipt(document).answer == "Unknown: no figure of this job can be used."
    assert receipt(document.model_copy(update={"cases": ()})).answer.startswith("Unknown: ")


def test_too_few_hosts_are_reported_as_too_few() -> None:
    few = made_of([measured_job(one) for one in of_hosts(SOUND[:4])])
    found = receipt(quiet(of_host(50, 0.9)), few)
    assert found.answer.endswith("There is no baseline with enough hosts of this model.")
    assert "has 4 other hosts of this model; hostbench uses it from 5 hosts on" in found.notes[0]


# ---- what to look at ----


def slow_memory() -> ResultDocument:
    """A guest with an empty channel, without turbo, and with a neighbour."""
    document = quiet(memory_run())
    memory = Memory(
        channels=(Channels(count=1, transfers_per_second=4.8e9, width_bits=64),),
        channels_wired=2,
        channels_source="SMBIOS",
        transparent_huge_pages="never",
    )
    host = document.host.model_copy(
        update={
            "memory": memory,
            "frequency": Frequency(driver="acpi-cpufreq", governor="powersave", turbo=False),
            "cgroup": CgroupLimits(quota_cpus=1.5),
        }
    )
    stolen = Condition(
        state=ConditionState.STOLEN, share=0.062, culprit="outside this host", is_sure=True
    )

    def taken(case: CaseResult) -> CaseResult:
        return case.model_copy(update={"condition": stolen, "delivered_ratio": 0.94})

    cases = (taken(document.cases[0]), *document.cases[1:])
    return document.model_copy(update={"host": host, "cases": cases})


def test_items_stand_in_the_order_of_what_they_cost() -> None:
    found = receipt(slow_memory())
    assert found.answer.startswith("Not quite: 7 findings below; mem reaches")
    assert found.faults == 7 and not any(item.is_fault for item in found.items[7:])
    assert "has no figure to use (1 invalid)." in found.items[0].text
    lost = [item.lost_ratio or 0.0 for item in found.items[:7]]
    assert lost == sorted(lost, reverse=True)
    items = {item.text: item for item in found.items}
    channel = items["1 of 2 memory channels seems empty."]
    assert channel.lost_ratio == 0.5 and "SMBIOS lists memory on 1" in channel.evidence
    assert (
        items["The CPU quota of this control group (1.5 of 2 CPUs) limits this job."].lost_ratio
        == 0.25
    )
    neighbour = items[
        "Another guest on the same machine took up to 6.2 % of the CPU time (steal time)."
    ]
    assert neighbour.lost_ratio == pytest.approx(0.06)
    assert "94.0 % of it" in neighbour.evidence
    assert {"Turbo is off.", "The governor powersave keeps the lowest clock."} <= items.keys()
    assert any(text.startswith("Transparent huge pages are off") for text in items)
    limit = next(item for item in found.items if "of its limit" in item.text)
    assert not limit.is_fault and "unknown without a baseline" in limit.evidence


@pytest.mark.parametrize(
    ("state", "culprit", "sure", "words"),
    [
        ("shared", "stress-ng, pid 12", True, "CPU time: stress-ng, pid 12."),
        ("shared", "stress-ng, pid 12", False, "CPU time: most likely stress-ng, pid 12."),
        ("shared", None, False, "CPU time; which ones is unknown."),
        (
            "shared",
            "dd, pid 12, on the disk",
            True,
            "moved up to 30.0 % of the bytes to and from disks: dd",
        ),
        ("quota", "the CPU quota of 1 CPUs", True, "The CPU quota of 1 CPUs held back up to"),
        ("throttled", "heat or power", True, "Heat or power held the clock down for up to 30.0 %"),
    ],
)
def test_who_took_it_is_named(state: str, culprit: str | None, sure: bool, words: str) -> None:
    condition = Condition(state=ConditionState(state), share=0.3, culprit=culprit, is_sure=sure)
    document = with_cases(whole(), condition=condition, delivered_ratio=0.7)
    (item,) = receipt(document).items
    assert words in item.text and item.lost_ratio == pytest.approx(0.3)


def test_a_card_at_its_power_limit_is_reported_and_is_no_fault() -> None:
    held = Condition(state=ConditionState.THROTTLED, share=1.0, culprit=BY_CARD, is_sure=True)
    found = receipt(with_cases(whole(), condition=held))
    assert found.answer.startswith("No fault found") and not found.faults
    (item,) = (one for one in found.items if "A GPU's own limits" in one.text)
    assert "for up to 100.0 % of the time" in item.text and "heat is not" in item.evidence


def test_bytes_of_disks_and_time_of_cpus_are_two_findings() -> None:
    """The larger share of another thing hides nothing."""
    document = whole()
    writer, hog = (
        Condition(state=ConditionState.SHARED, share=share, culprit=culprit, is_sure=True)
        for share, culprit in ((0.8, "dd, pid 12, on the disk"), (0.5, "stress-ng, pid 7"))
    )
    first, *rest = document.cases
    cases = (
        first.model_copy(update={"condition": writer}),
        *(case.model_copy(update={"condition": hog}) for case in rest),
    )
    texts = [item.text for item in receipt(document.model_copy(update={"cases": cases})).items]
    assert "Other processes took up to 50.0 % of the CPU time: stress-ng, pid 7." in texts
    moved = "Other processes moved up to 80.0 % of the bytes to and from disks: dd, pid 12."
    assert moved in texts


def test_what_the_figures_do_not_show_costs_nothing() -> None:
    condition = Condition(state=ConditionState.SHARED, share=0.3)
    document = with_cases(
        whole(), condition=condition, delivered_ratio=0.999, verdict=Verdict.CLEAN
    )
    found = receipt(document)
    assert found.answer.startswith("No fault found")
    assert "the figures do not show it" in found.items[0].evidence


@pytest.mark.parametrize(
    ("verdict", "is_named"), [(Verdict.DISTURBED, True), (Verdict.CLEAN, False)]
)
def test_a_small_share_is_named_of_what_it_disturbed(verdict: Verdict, is_named: bool) -> None:
    condition = Condition(
        state=ConditionState.SHARED, share=0.02, culprit="stress-ng, pid 12", is_sure=True
    )
    document = with_cases(whole(), condition=condition, delivered_ratio=None, verdict=verdict)
    texts = [item.text for item in receipt(document).items]
    of_hog = "Other processes took up to 2.0 % of the CPU time: stress-ng, pid 12."
    assert (of_hog in texts) is is_named


def chased(cycles: dict[str, float]) -> ResultDocument:
    """A card of compute capability 9.0 whose accesses take so many cycles, by level."""
    document = quiet(gpu_run(limits=False))
    case = next(case for case in document.cases if case.workload == "gpu.pointer_chase")
    primary = case.metrics[case.primary]
    cases = [
        case.model_copy(
            update={
                "params": {**case.params, "size_bytes": level},
                "label": f"size {level}",
                "verdict": Verdict.CLEAN,
                "metrics": {
                    **case.metrics,
                    CYCLES: primary.model_copy(
                        update={"unit": "cycle", "statistics": describe([found] * 3)}
                    ),
                },
            }
        )
        for level, found in cycles.items()
    ]
    return document.model_copy(update={"cases": tuple(cases)})


def test_published_figures_are_the_reference_where_nothing_else_is() -> None:
    found = receipt(chased({"l1": 32.5, "l2": 290.0, "dram": 700.0}))
    assert found.answer.startswith("No fault found; gpu reaches 3 of 3 published figures (GH200 ")
    assert "te42kyfo/gpu-benches" in found.answer and not found.items
    found = receipt(chased({"l1": 33.0, "l2": 310.0}))
    assert "gpu reaches 1 of 2 published figures" in found.answer
    (item,) = found.items
    assert item.text == "gpu.pointer_chase size l2 is 9.7 % worse than published."
    assert item.evidence.startswith("310.0 cycle; published: at most 280.0 cycle (GH200 ")
    assert not item.is_fault and item.lost_ratio == pytest.approx(1 - 280 / 310)
    unknown = chased({"262144": 33.0})
    assert receipt(unknown).answer.startswith("No reference: no limit of gpu is known")


def test_published_figures_of_another_host_are_no_reference() -> None:
    document = course_run()
    published = document.suite.published
    assert published is not None
    found = receipt(document)
    assert f"those of {published.host.name}, another host" in found.notes[-1]
    assert not any("published" in item.text for item in found.items)


# ---- where it stands ----


def test_the_page_begins_with_it() -> None:
    page = html(report_of(slow_memory(), "result.json"))
    head = page[page.index("<body>") : page.index("<nav")]
    assert head.index("Is this host as it should be?") < head.index("<dt>What</dt>")
    assert '<div class="answer doubtful">' in head
    assert '<p class="verdict">Not quite: 7 findings' in head
    assert "3 more to look at" in head or head.count("<li>") >= 5
    low = report_of(of_host(50, 0.9), "r", check_host([measured_job(of_host(50, 0.9))], baseline()))
    assert '<div class="answer bad">' in html(low)
    text = markdown(low)
    assert text.index("**Is this host as it should be? No:") < text.index("- What:")


def test_run_and_report_find_a_baseline_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = of_host(50, 0.9)
    job = stored(document, tmp_path / "results")
    assert "There is no baseline of this model" in rendered(job, Format.MARKDOWN)
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines/it.json").write_bytes(content_of(baseline()))
    assert "7 other hosts of this model" in rendered(job, Format.HTML)
    stream = io.StringIO()
    show_result(document, stream)
    printed = " ".join(stream.getvalue().split())
    assert "Is this host as it should be? No: 12 of 12 headline figures are worse" in printed
    assert "1. cpu.fma" in printed and "Look at the clock" in printed
    (tmp_path / "baselines/it.json").write_text("{}")
    assert "A baseline was not used:" in rendered(job, Format.MARKDOWN)


def test_figures_that_vary_from_job_to_job() -> None:
    """A remark, with the case that varies most; nothing was lost in this job."""
    document = quiet(of_host(50, 0.98))
    text = "50.0 Gop/s to 100.0 Gop/s in this and 6 earlier jobs of this host"

    def varying(case: CaseResult, low: float) -> CaseResult:
        known = BetweenJobs(jobs=7, low=low, high=100.0, off=2, bound_ratio=0.03)
        reason = Reason(code=VARIES, text=text if low == 50 else "less")
        changes = {"verdict": Verdict.NOISY, "reasons": (reason,), "between_jobs": known}
        return case.model_copy(update=changes)

    first, second, *others = document.cases
    cases = (varying(first, 90.0), varying(second, 50.0), *others)
    found = receipt(document.model_copy(update={"cases": cases}), baseline())
    assert found.answer == receipt(document, baseline()).answer and found.faults == 0
    (item,) = found.items
    assert not item.is_fault and item.evidence == f"{text}."
    assert item.text == (
        f"2 figures of cpu vary from job to job on this host, most that of {second.title}."
    )
