"""What is made of peers' trials: verdicts, pairs and ratios, from the journal to the table."""

import csv
import io
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.render import show_result
from hostbench.judge.peer import judged_peer_trial
from hostbench.judge.trial import measured_trial
from hostbench.model.events import SkipEvent
from hostbench.model.peer import PeerEndEvent, PeerStartEvent
from hostbench.model.result import (
    CaseResult,
    PeerResult,
    Record,
    ResultDocument,
    TrialRecord,
    Verdict,
)
from hostbench.model.suite import Repeats
from hostbench.model.trial import Beside
from hostbench.page.job import report_of
from hostbench.programs.peer import Ask, BadOutput, Command, Peer, Survey
from hostbench.report.markdown import markdown
from hostbench.results.csv import case_table
from hostbench.results.document import assemble, job_exit_code, replay
from orchestrator.influx.points import document_points
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    done,
    end,
    limit,
    planned,
    session,
    start,
)

BESIDE = Beside(cpus=(0, 1), rate=100.0, elapsed_s=1.0)


class Echo(Peer):
    """Its output is its figure."""

    tool = "likwid-bench"
    package = "likwid"
    title = "peakflops"
    measures = "a figure"
    unit = "operation/s"
    metric: str | None = RATE

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey(version="5.2.2")

    def command(self, beside: Beside) -> Command:
        return Command(("likwid-bench",))

    def parse(self, output: str, beside: Beside) -> float:
        try:
            return float(output)
        except ValueError:
            raise BadOutput("no figure in its output") from None


def peer_start(**changes: Any) -> PeerStartEvent:
    plain: dict[str, Any] = {
        "tool": Echo.tool,
        "title": Echo.title,
        "measures": Echo.measures,
        "metric": RATE,
        "unit": "operation/s",
        "version": "5.2.2",
        "library": None,
        "command": ("taskset", "--cpu-list", "0,1", "likwid-bench"),
        "time_unix_s": 1.8e9,
    }
    return PeerStartEvent(**(plain | changes))


def peer_end(output: str = "100", **changes: Any) -> PeerEndEvent:
    plain: dict[str, Any] = {
        "exit_code": 0,
        "timed_out": False,
        "output": output,
        "output_bytes": len(output),
        "elapsed_s": 1.0,
        "cpu_s": 2.0,
        "others_ratio": 0.0,
        "steal_ratio": 0.0,
        "left_behind": 0,
    }
    return PeerEndEvent(**(plain | changes))


def peer_trial(
    output: str = "100", index: int = 0, top: float | None = None, **changes: Any
) -> TrialRecord:
    record = bare_trial(
        index, tool="likwid-bench", events=(peer_start(), peer_end(output, **changes))
    )
    return judged_peer_trial(record, Echo(), BESIDE, limit(top) if top else None)


def our_trial(value: float, index: int, **disturbance: Any) -> TrialRecord:
    record = bare_trial(index, events=(start(), end(value, **disturbance)))
    return measured_trial(record, (RATE_METRIC,), {})


def document(*records: Record, **case: Any) -> ResultDocument:
    cases = (planned(peers=("likwid-bench",), **case),)
    return assemble(replay([session(cases), *records, done()]))


def only(document: ResultDocument) -> tuple[CaseResult, PeerResult]:
    (case,) = document.cases
    (peer,) = case.peers
    return case, peer


def turns(ours: list[float], theirs: list[str]) -> list[Record]:
    pairs = zip(ours, theirs, strict=True)
    return [
        record
        for i, (our, their) in enumerate(pairs)
        for record in (our_trial(our, i), peer_trial(their, i))
    ]


def test_the_ratio_is_of_neighbours() -> None:
    case, peer = only(document(*turns([110.0, 200.0, 330.0], ["100", "200", "300"])))
    assert case.metrics[RATE].statistics.n == 3
    assert peer.statistics is not None and peer.ratio is not None
    assert peer.statistics.median == 200.0
    # Of the medians it would be 1.0, of the pairs it is not.
    assert peer.ratio.median == pytest.approx(1.1)
    assert (peer.ratio.n, peer.ratio.minimum) == (3, 1.0)
    assert (peer.tool, peer.version, peer.title) == ("likwid-bench", "5.2.2", "peakflops")
    assert [trial.index for trial in peer.trials] == [0, 1, 2]


def test_a_peers_trial_never_counts_as_ours() -> None:
    case, _ = only(document(*turns([100.0, 100.0, 100.0], ["1", "1", "1"])))
    assert case.counted == (0, 1, 2)
    assert len(case.trials) == 3
    assert case.metrics[RATE].statistics.median == 100.0
    assert case.verdict is Verdict.CLEAN


SMALL = "4 KiB pages; ours huge ones"


def test_a_peer_under_other_conditions_has_no_ratio_anywhere() -> None:
    """Not in the document, the terminal, the CSV, the page, its Markdown, or a point."""
    other = peer_start(metric=None, differs=(SMALL,))
    trials = [
        judged_peer_trial(
            bare_trial(i, tool="likwid-bench", events=(other, peer_end("100"))),
            Echo(),
            BESIDE,
            None,
        )
        for i in range(3)
    ]
    records = [one for i in range(3) for one in (our_trial(290.0 + i, i), trials[i])]
    whole = document(*records)
    _, peer = only(whole)
    assert (peer.ratio, peer.ours, peer.differs) == (None, None, (SMALL,))
    assert peer.statistics is not None and peer.statistics.median == 100.0
    assert f"likwid-bench 5.2.2, no ratio: cpu.fma 2 threads 100.0 op/s ({SMALL})." in _shown(whole)
    rows = list(csv.DictReader(io.StringIO(case_table(whole))))
    assert [rows[1][f"ours_over_peer{end}"] for end in ("", "_low", "_high")] == [""] * 3
    assert (rows[1]["peer_differs"], rows[1]["ours_beside_peer"]) == (SMALL, "")
    text = markdown(report_of(whole, "result.json"))
    (row,) = [line for line in text.splitlines() if "likwid-bench peakflops" in line][:1]
    assert f"differs: {SMALL}" in row and "2.9" not in row
    points = list(document_points(whole))
    assert not [one for one in points if {"ratio", "peer_ratio"} & set(one.fields)]
    assert [one.fields["differs"] for one in points if one.tags.get("role") == "peer"] == [SMALL]


def test_a_ratio_of_disturbed_or_invalid_trials_is_not_made() -> None:
    busy = [our_trial(50.0, i, clean_slice_ratio=0.3) for i in range(3)]
    wrong = [one.model_copy(update={"verdict": Verdict.INVALID}) for one in
             (our_trial(100.0, i) for i in range(3))]  # fmt: skip
    quiet = [our_trial(100.0, i) for i in range(3)]
    for ours, changes, verdict in (
        (busy, {}, Verdict.DISTURBED),
        (quiet, {"others_ratio": 0.3}, Verdict.DISTURBED),
        (wrong, {}, Verdict.INVALID),
    ):
        pairs = [
            record for i, one in enumerate(ours) for record in (one, peer_trial("99", i, **changes))
        ]
        _, peer = only(document(*pairs))
        assert (peer.verdict, peer.ratio) == (verdict, None)
        assert peer.statistics is not None and peer.ours is not None and peer.reasons


def test_our_figure_beside_a_peer_is_of_the_same_pairs() -> None:
    """Not that of all trials of the case, which stands in front of it."""
    records = [*turns([100.0, 101.0, 102.0], ["100", "100", "100"]), our_trial(150.0, 3)]
    records += [our_trial(150.0, i) for i in range(4, 8)]
    case, peer = only(document(*records))
    assert case.metrics[RATE].statistics.median == 150.0
    assert peer.ours is not None and (peer.ours.median, peer.ours.n) == (101.0, 3)


def test_context_has_no_ratio() -> None:
    context = bare_trial(
        tool="likwid-bench",
        events=(peer_start(metric=None, unit="event/s"), peer_end("7")),
    )
    peer = Echo()
    peer.metric = None
    record = judged_peer_trial(context, peer, BESIDE, None)
    _, result = only(document(our_trial(100.0, 0), record))
    assert (result.metric, result.ratio, result.unit) == (None, None, "event/s")
    assert result.statistics is not None and result.statistics.median == 7.0


def test_pairs_with_a_disturbed_trial_are_left_out_when_others_are_enough() -> None:
    records = turns([100.0, 101.0, 102.0, 103.0], ["100", "100", "100", "100"])
    records[0] = our_trial(50.0, 0, clean_slice_ratio=0.3)
    _, peer = only(document(*records))
    assert peer.ratio is not None and peer.ratio.n == 3
    assert peer.ratio.minimum == 1.01
    assert peer.verdict is Verdict.CLEAN
    records[3] = peer_trial("100", 1, steal_ratio=0.2)
    _, peer = only(document(*records))
    assert peer.ratio is None and peer.ours is not None and peer.ours.n == 4
    assert peer.verdict is Verdict.DISTURBED
    assert {reason.code for reason in peer.reasons} >= {"stolen", "our_trial_disturbed"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"steal_ratio": 0.011}, "stolen"),
        ({"others_ratio": 0.051}, "cpu_taken_away"),
    ],
)
def test_a_disturbed_peer(changes: dict[str, Any], code: str) -> None:
    trial = peer_trial(**changes)
    assert trial.verdict is Verdict.DISTURBED
    assert [reason.code for reason in trial.reasons] == [code]
    assert trial.value == 100.0


def test_unknown_disturbance_is_none() -> None:
    assert peer_trial(steal_ratio=None, others_ratio=None).verdict is Verdict.CLEAN


@pytest.mark.parametrize(("value", "verdict"), [("102", Verdict.CLEAN), ("102.1", Verdict.INVALID)])
def test_a_peer_above_our_limit_is_flagged(value: str, verdict: Verdict) -> None:
    trial = peer_trial(value, top=100.0)
    assert trial.verdict is verdict
    records = [our_trial(99.0, 0), trial]
    whole = document(*records)
    case, peer = only(whole)
    assert (case.verdict, peer.verdict) == (Verdict.CLEAN, verdict)
    # It is the peer's figure, and our job has succeeded all the same.
    assert job_exit_code(whole) is ExitCode.OK
    if verdict is Verdict.INVALID:
        assert "102.1 % of the limit" in peer.reasons[0].text


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"timed_out": True, "exit_code": None}, "timeout"),
        ({"exit_code": None}, "not_started"),
        ({"exit_code": -9}, "killed"),
        ({"exit_code": 3}, "exit_code"),
        ({"output": "twelve"}, "malformed_output"),
        ({"output": "inf"}, "no_figure"),
        ({"output": "-5"}, "no_figure"),
    ],
)
def test_a_failed_peer_leaves_our_case_alone(changes: dict[str, Any], code: str) -> None:
    trial = peer_trial(**changes)
    assert (trial.verdict, trial.value) == (Verdict.FAILED, None)
    assert trial.failure is not None and trial.failure.code == code
    assert "\n" not in trial.failure.message
    whole = document(our_trial(100.0, 0), trial)
    case, peer = only(whole)
    assert (case.verdict, peer.verdict) == (Verdict.CLEAN, Verdict.FAILED)
    assert (peer.statistics, peer.ratio) == (None, None)
    assert job_exit_code(whole) is ExitCode.OK


def not_installed(index: int = 0) -> TrialRecord:
    reason = "likwid-bench is not installed; install it with: apt install likwid"
    events = (peer_start(version=None, command=()), SkipEvent(event="skip", reason=reason))
    record = bare_trial(index, tool="likwid-bench", events=events)
    return judged_peer_trial(record, Echo(), BESIDE, None)


def test_a_missing_peer_is_skipped_and_reported_once() -> None:
    whole = document(our_trial(100.0, 0), not_installed())
    _, peer = only(whole)
    assert (peer.verdict, peer.version, peer.command) == (Verdict.SKIPPED, None, ())
    assert "1 case: likwid-bench is not installed; install it with: apt install likwid." in _shown(
        whole
    )


def _shown(document: ResultDocument) -> str:
    text = io.StringIO()
    show_result(document, text)
    return " ".join(text.getvalue().split())


def test_the_line_of_a_tool() -> None:
    whole = document(*turns([101.0, 102.0, 103.0], ["100", "100", "100"]))
    assert (
        "likwid-bench 5.2.2, ours/peer of operations per second: "
        "cpu.fma 2 threads 1.020 (0.992–1.049)." in _shown(whole)
    )


def test_a_terminal_never_gets_what_a_peer_printed_raw() -> None:
    whole = document(our_trial(100.0, 0), peer_trial("\x1b]0;title\x07 no figure"))
    assert "\x1b" not in _shown(whole)
    assert "no figure in its output; its output: �]0;title� no figure" in _shown(whole)


def test_csv_has_a_row_for_each_peer() -> None:
    whole = document(*turns([101.0, 102.0, 103.0], ["100", "100", "100"]))
    rows = list(csv.DictReader(io.StringIO(case_table(whole))))
    assert [row["tool"] for row in rows] == ["hostbench", "likwid-bench"]
    ours, theirs = rows
    assert (theirs["median"], theirs["n"], theirs["metric"]) == ("100.0", "3", RATE)
    assert (ours["best"], theirs["best"]) == ("103.0", "")
    assert float(theirs["ours_over_peer"]) == pytest.approx(1.02)
    assert (theirs["peer_version"], theirs["peer_title"]) == ("5.2.2", "peakflops")
    assert ours["ours_over_peer"] == ""
    assert (ours["direction"], theirs["direction"]) == ("higher", "higher")
    missing = case_table(document(our_trial(100.0, 0), not_installed()))
    assert list(csv.DictReader(io.StringIO(missing)))[1]["verdict"] == "skipped"


def test_what_is_written_is_what_is_read() -> None:
    written = document(*turns([101.0, 102.0, 103.0], ["100", "100", "100"]))
    assert ResultDocument.model_validate_json(written.model_dump_json()) == written


def test_a_resumption_keeps_the_peers_of_the_cases_it_keeps() -> None:
    case = planned(peers=("likwid-bench",))
    first = [session((case,)), *turns([101.0, 102.0, 103.0], ["100", "100", "100"]), done()]
    kept = assemble(replay([*first, session((case,), kept=("aaaa",))]))
    assert len(only(kept)[1].trials) == 3
    again = assemble(replay([*first, session((case,))]))
    assert again.cases[0].peers == ()


def test_a_single_pair_has_a_ratio_without_spread() -> None:
    repeats = Repeats(min_trials=1, max_trials=1)
    whole = document(*turns([101.0], ["100"]), repeats=repeats)
    _, peer = only(whole)
    assert peer.ratio is not None and (peer.ratio.n, peer.ratio.median) == (1, 1.01)
