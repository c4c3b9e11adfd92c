"""The commands fleet schedule and fleet pairs, on documents of jobs between two hosts."""

import csv
import io
import itertools
import json
import random
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from hostbench.cli.decisions import Require
from hostbench.cli.fleet_report import exit_code
from hostbench.decisions.pair_documents import judged as judged_pairs
from hostbench.decisions.pair_documents import measured_pairs, racks_of
from hostbench.decisions.pair_rounds import Pair, matchings, tournament
from hostbench.decisions.pairs import pair_matrix
from hostbench.model.baseline import HostWord
from hostbench.model.fleet import FleetCheck
from hostbench.model.pairs import PairMatrix, PairWord
from hostbench.model.result import CampaignMember, ResultDocument, Verdict
from hostbench.page.pairs import HOSTS_DRAWN, pairs_report
from hostbench.report.charts.draw import draw
from hostbench.report.charts.matrix import step_of
from hostbench.report.content import BESIDE_SOUND, Chart, MatrixChart
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from hostbench.results.pairs_csv import HOST, pair_rows
from hostbench.results.sealed import sealed
from hostbench.results.store import DOCUMENT
from tests.unit.baseline_documents import of_host
from tests.unit.net_documents import net_run
from tests.unit.pair_documents import Network, document, machine

_RNG = random.Random(1)
NOISE = [_RNG.gauss(0, 0.02) for _ in range(200)]
RACKS = [f"--rack=rack{rack}=node{rack}*" for rack in range(4)]
ROUND_S = 30.0


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(["fleet", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def network(**spoilt: float) -> Network:
    found = Network(random.Random(3), racks_count=4, rack_size=6, noise=NOISE)
    found.hosts = {name: factor for name, factor in spoilt.items() if name in found.nodes}
    found.uplinks = {name: factor for name, factor in spoilt.items() if name not in found.nodes}
    return found


def documents(
    found: Network,
    rounds: Iterable[Iterable[Pair]],
    numbers: Iterator[int],
    *,
    cluster: str | None = None,
    campaign: str = "net-1",
) -> Iterator[ResultDocument]:
    """One job for each pair; the pairs of a round at the same time."""
    for at, pairs in enumerate(rounds):
        for near, far in pairs:
            yield document(
                near,
                far,
                found.value(near, far),
                next(numbers),
                start_s=at * ROUND_S,
                cluster=cluster,
                campaign=campaign,
            )


def store(place: Path, jobs: Iterable[ResultDocument]) -> None:
    for one in jobs:
        (place / one.job.id).mkdir(parents=True)
        (place / one.job.id / DOCUMENT).write_text(one.model_dump_json())


def test_from_the_schedule_to_the_slow_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Print rounds, measure them, measure what is suspect, and read the answer in every form."""
    own = network(node104=0.78, rack2=0.75)
    code, out, _ = printed(capsys, "schedule", *own.nodes, *RACKS, "--rounds=10", "--json")
    assert code == 0
    schedule = json.loads(out)
    assert schedule["racks"] == own.racks and schedule["pairs"] == 120
    assert schedule["links_share"] == pytest.approx(120 / 276)
    numbers = count()
    store(tmp_path, documents(own, schedule["rounds"], numbers, cluster="c", campaign="first"))
    code, out, _ = printed(capsys, "pairs", str(tmp_path), *RACKS, "--json")
    matrix = PairMatrix.model_validate_json(out)
    again = [one.pairs for one in matrix.next_rounds]
    assert again, "what is slow was measured ten times, and twelve decide"
    store(tmp_path, documents(own, again, numbers, cluster="c", campaign="second"))

    page = tmp_path / "pairs.html"
    code, out, _ = printed(capsys, "pairs", str(tmp_path), *RACKS, f"--html={page}")
    assert code == ExitCode.WORSE
    assert out.startswith("Slow: 1 host and 1 uplink")
    lines = [line.split() for line in out.splitlines()]
    assert any(line[:2] == ["host", "node104"] and line[-1] == "slow" for line in lines)
    assert any(line[:4] == ["uplink", "of", "rack", "rack2"] for line in lines)
    assert "Rack rack2: pairs within it are not slow" in " ".join(out.split())
    text = page.read_text()
    assert "<script" not in text and "Host node104.</strong> −2" in text

    code, out, _ = printed(capsys, "pairs", str(tmp_path), *RACKS, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    slow = {(row["kind"], row["name"]) for row in rows if row["word"] == "slow"}
    assert {("host", "node104"), ("uplink", "rack2")} <= slow
    assert sum(row["kind"] == "host" for row in rows) == 24
    assert all(float(row["value"]) > 5e8 for row in rows if row["kind"] == "link")

    code, out, _ = printed(capsys, "pairs", str(tmp_path), "--campaign=first", "--json")
    assert json.loads(out)["measurements"] == 120
    code, _, err = printed(capsys, "pairs", str(tmp_path), "--campaign=frist")
    assert code == 2 and "did you mean 'first'" in err and "first, second" in err


def test_the_report_of_a_fleet_has_its_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the words, matrix and rows of `fleet pairs`, and one damaged document left out."""
    own = network(node104=0.7, rack2=0.7)
    rounds = matchings(own.nodes, 20, own.racks, 1)
    store(tmp_path / "jobs", documents(own, rounds, count(), cluster="c"))
    damaged = tmp_path / "jobs/20261126T999999Z-net-ffff"
    damaged.mkdir()
    (damaged / DOCUMENT).write_text("{")
    page = tmp_path / "fleet.html"
    given = (str(tmp_path / "jobs"), *RACKS)
    code, out, _ = printed(capsys, "report", *given, f"--html={page}")
    assert code == ExitCode.WORSE
    words = " ".join(out.split())
    assert "Slow: 1 host and 1 uplink." in words and "uplink of rack rack2" in words
    assert words.count("cut short or damaged") == 1
    text = page.read_text()
    assert "Is the network between the hosts as it should be?" in text
    assert "Which hosts are bad?" in text and "Host node104.</strong> −" in text
    assert "Pairs of hosts beside sound pairs" in text and "<script" not in text
    code, out, _ = printed(capsys, "report", *given, "--json")
    fleet = FleetCheck.model_validate_json(out)
    matrix = fleet.pairs
    # A slow network alone makes the exit code, too.
    fine = fleet.model_copy(
        update={
            "hosts": tuple(
                one.model_copy(update={"word": HostWord.AS_EXPECTED}) for one in fleet.hosts
            )
        }
    )
    assert exit_code(fine, Require.NOT_WORSE) is ExitCode.WORSE
    without = fine.model_copy(update={"pairs": None})
    assert exit_code(without, Require.NOT_WORSE) is ExitCode.OK
    code, out, _ = printed(capsys, "pairs", *given, "--json")
    alone = PairMatrix.model_validate_json(out)
    assert code == ExitCode.WORSE and "damaged" in alone.left_out[-1]
    assert matrix is not None
    assert matrix == alone.model_copy(update={"left_out": alone.left_out[:-1]})
    _, out, _ = printed(capsys, "report", *given, "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["network"]]
    _, out, _ = printed(capsys, "pairs", *given, "--csv")
    expected = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == len(expected) > 200
    for row, other in zip(rows, expected, strict=True):
        name = row["rack"] if row["network"] == "uplink" else row["host"]
        assert (row["network"], name) == (other["kind"], other["name"])
        assert [row[key] for key in ("other", "measured", "value", "ratio", "p", "word")] == [
            other[key] for key in ("other", "measured", "value", "ratio", "chance", "word")
        ]


def test_a_rack_needs_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        document = of_host(number)
        job = tmp_path / document.job.id
        job.mkdir()
        (job / DOCUMENT).write_text(document.model_dump_json())
    code, out, err = printed(capsys, "report", str(tmp_path), "--rack=r1=node1")
    assert code == ExitCode.USAGE and not out and "--rack 'r1=node1' is about a network" in err


def test_a_full_schedule_has_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, "schedule", "a", "b", "c", "--full")
    assert code == 0 and out.splitlines()[-1].startswith("3 pairs of 3 nodes, 100.0 % of all")
    assert len(out.splitlines()) == 4
    assert printed(capsys, "schedule", "a", "b")[1].startswith("round 1: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("schedule", "a"), "'a' is one node; a pair needs two"),
        (("schedule", "a", "b", "a"), "node 'a' is named twice"),
        (("schedule", "a", "b", "--rounds=2"), "--rounds '2' is not allowed"),
        (("schedule", "a", "b", "--rounds=1", "--full"), "give one"),
        (("schedule", "a", "b", "--seed=x"), "--seed 'x' is not allowed"),
        (("schedule", "node1", "b", "--rack=r1=node2"), "did you mean 'node1'? give it as a node"),
        (("schedule", "a", "b", "--rack=r1=c*"), "no node is like 'c*'"),
        (("schedule", "a", "b", "--rack=r1=a", "--rack=r2=a,b"), "a is in two racks, r1 and r2"),
        (("schedule", "a", "b", "--rack=r1"), "--rack 'r1' is no rack; write its label"),
        (("schedule", "a", "b", "--rack=r1=a,,b"), "is no rack"),
        (("pairs", "no-such-folder/"), "no-such-folder"),
        (("pairs", "x", "--json", "--csv"), "--csv"),
        (("pairs", "x", "--html", "."), "is a directory"),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, _, err = printed(capsys, *arguments)
    assert code == ExitCode.USAGE
    assert words in err and len(err.splitlines()) == 1


def test_documents_that_make_no_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path / "one", [sealed(net_run(trials=3, peers=False))])
    store(tmp_path / "two", documents(network(), [[("node000", "node001")]], count()))
    cases = {
        (str(tmp_path / "one"),): "1 document, and none of a job between two hosts",
        (str(tmp_path / "two"), "--rack=r9=elsewhere"): "--rack r9 is unknown",
        (str(tmp_path / "two"), "--case=cpu.fma"): "--case 'cpu.fma' is no case of these documents",
    }
    for arguments, words in cases.items():
        code, _, err = printed(capsys, "pairs", *arguments)
        assert code == ExitCode.USAGE and words in err and len(err.splitlines()) == 1
    code, out, _ = printed(capsys, "pairs", str(tmp_path / "one"), str(tmp_path / "two"))
    assert code == ExitCode.UNDECIDED
    assert out.startswith("Unknown: 1 measurement between 2 hosts are too few")
    assert "not used: 1 document of one host alone" in out


def test_two_clusters_are_refused_and_two_campaigns_are_not() -> None:
    numbers, own = count(), network()
    pairs = [[(own.nodes[0], own.nodes[1])]]
    first = list(documents(own, pairs, numbers, cluster="one", campaign="x"))
    second = list(documents(own, pairs, numbers, cluster="one", campaign="y"))
    other = list(documents(own, pairs, numbers, cluster="two", campaign="z"))
    assert len(measured_pairs([*first, *second]).measurements) == 2
    with pytest.raises(UsageError, match="of 2 clusters") as refusal:
        measured_pairs([*first, *other])
    assert "choose with --campaign x or z, or give" in refusal.value.message


def test_the_same_pair_twice_is_a_repeat_and_the_same_document_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = network()
    there, back = ("node000", "node001"), ("node001", "node000")
    store(tmp_path, documents(own, [[there], [back], [("node002", "node003")]], count()))
    code, out, _ = printed(capsys, "pairs", str(tmp_path), str(tmp_path), "--json")
    assert code == ExitCode.UNDECIDED
    matrix = json.loads(out)
    assert matrix["measurements"] == 3
    assert [(one["a"], one["b"], one["measured"]) for one in matrix["links"]] == [
        ("node000", "node001", 2),
        ("node002", "node003", 1),
    ]


def test_what_may_not_be_used_is_counted() -> None:
    numbers = count()
    sound = list(documents(network(), [[("node000", "node001"), ("node002", "node003")]], numbers))
    failed = document("node004", "node005", 1e9, next(numbers), verdict=Verdict.DISTURBED)
    itself = document("node004", "node004", 1e9, next(numbers))
    found = measured_pairs([*sound, failed, itself])
    assert len(found.measurements) == 2 and found.hosts == tuple(f"node00{n}" for n in range(4))
    assert found.left_out == (
        "1 document with a figure that may not be used (disturbed)",
        "1 document of node004 with itself",
    )


def test_the_case_is_the_bandwidth_unless_another_is_named() -> None:
    jobs = list(documents(network(), [[("node000", "node001")]], count()))
    found = measured_pairs(jobs)
    assert found.title.startswith("net.tcp_stream far_host") and found.unit == "byte/s"
    assert found.measurements[0].value < 2e9, "not of the stream within the near host"
    with pytest.raises(UsageError, match="no case of these documents"):
        measured_pairs(jobs, "net.tcp_stream loopback duration_s=1.0")
    trips = measured_pairs(jobs, "net.tcp_rr")
    assert trips.unit == "s" and trips.direction == "lower"


def test_pairs_alone_are_reported_by_the_documents_times() -> None:
    own = network()
    rounds = matchings(own.nodes, 2, own.racks)
    numbers = count()
    jobs = list(documents(own, rounds, numbers))
    late_s = 10 * ROUND_S
    for at, (near, far) in enumerate(rounds[0]):
        start_s = late_s + at * ROUND_S
        jobs.append(document(near, far, 1e9, next(numbers), start_s=start_s))
    found = measured_pairs(jobs).measurements
    assert [one.alone for one in found] == [False] * 24 + [True] * 12
    # As jobs of many hosts that begin in one second may have.
    one_id = jobs[0].job
    same = measured_pairs([job.model_copy(update={"job": one_id}) for job in jobs])
    assert [one.alone for one in same.measurements] == [one.alone for one in found]


def test_both_nodes_of_a_pair_have_its_lock() -> None:
    numbers = count()
    jobs = [
        document(near, far, 1e9, next(numbers), cluster=cluster)
        for near, far, cluster in (("a", "b", "c"), ("d", "e", "c"), ("f", "g", None))
    ]
    pair = CampaignMember.model_validate(vars(jobs[0].member) | {"far_node": "b", "round": 1})
    jobs[0] = jobs[0].model_copy(update={"member": pair})
    matrix = judged_pairs(measured_pairs(jobs), ())
    assert matrix.locks == dict.fromkeys("abd", ("host",)) | dict.fromkeys("efg", ())
    assert {row["name"]: row["locks"] for row in pair_rows(matrix) if row["kind"] == HOST} == {
        host: " ".join(locks) for host, locks in matrix.locks.items()
    }
    page = html(pairs_report(matrix))
    assert (
        "the host&#39;s lock file, on 3 hosts: a, b, d; unknown (the document names no lock)"
        in page
    )


def test_the_racks_are_those_of_the_latest_documents_unless_they_are_given() -> None:
    own = network(rack2=0.75)
    before = dict.fromkeys(own.nodes, "old row")
    rounds = matchings(own.nodes, 14, own.racks)
    jobs = [
        with_racks(one, own.racks if number > 11 else before)
        for number, one in enumerate(documents(own, rounds, count(), cluster="c"))
    ]
    found = measured_pairs(jobs)
    given = [rack.removeprefix("--rack=") for rack in RACKS]
    assert judged_pairs(found, ()) == judged_pairs(found, given)
    (slow,) = (one for one in judged_pairs(found, ()).uplinks if one.word is PairWord.SLOW)
    assert slow.rack == "rack2"
    within = judged_pairs(found, ["r=node*"])
    assert {one.rack for one in within.hosts} == {"r"} and within.uplinks == ()


def with_racks(job: ResultDocument, racks: Mapping[str, str]) -> ResultDocument:
    """It, as a campaign of pairs leaves it that knows these racks."""
    assert job.member is not None and job.far_host is not None
    near, far = job.member.node, job.far_host.inventory.hostname
    ends = {"far_node": far, "rack": racks[near], "far_rack": racks[far]}
    return job.model_copy(update={"member": job.member.model_copy(update=ends)})


def test_a_far_host_has_the_name_of_its_node() -> None:
    """In a container the host's name is not the node's; its machine tells which it is."""
    numbers = count()
    jobs = [
        document(near, far, 1e9, next(numbers), cluster="c", far_machine=far_machine)
        for near, far, far_machine in (
            ("node000", "node001", None),
            ("node001", "pod-7", machine("node000")),
            ("node002", "copy", machine("node002")),
        )
    ]
    ends = [(one.near, one.far) for one in measured_pairs(jobs).measurements]
    assert ends == [("node000", "node001"), ("node001", "node000"), ("node002", "copy")]


def test_racks_that_are_partly_measured() -> None:
    racks = racks_of(["r1=a,b,gone", "r2=c*"], ["a", "b", "c1", "c2"], missing=True)
    assert racks == {"a": "r1", "b": "r1", "c1": "r2", "c2": "r2"}


def judged(own: Network, rounds: int) -> PairMatrix:
    found = [m for r in matchings(own.nodes, rounds, own.racks) for m in own.measured(r)]
    return pair_matrix(found, own.racks, title="net.tcp_stream")


def matrix_of(matrix: PairMatrix) -> MatrixChart:
    (section, *_) = pairs_report(matrix).sections
    (chart,) = [block for block in section.blocks if isinstance(block, Chart)]
    assert isinstance(chart.drawing, MatrixChart)
    return chart.drawing


def test_the_matrix_as_a_drawing() -> None:
    own = network(node104=0.6)
    chart = matrix_of(judged(own, 14))
    assert len(chart.labels) == 24 and chart.groups == tuple((f"rack{n}", 6) for n in range(4))
    row = chart.labels.index("node104")
    assert row in chart.stands_out
    own_cells = [ratio for (a, _), ratio in chart.cells.items() if a == row]
    assert len(own_cells) == 14 and max(own_cells) < 0.7
    assert all(chart.cells[b, a] == ratio for (a, b), ratio in chart.cells.items())
    for drawing in draw(chart, "pairs"):
        svg = ElementTree.fromstring(drawing)
        width, height = (float(part) for part in svg.attrib["viewBox"].split()[2:])
        texts = list(svg.iter("text"))
        assert {"rack0", "rack3"} <= {text.text for text in texts}
        assert all(0 <= float(one.attrib["x"]) <= width for one in texts)
        assert all(0 <= float(one.attrib["y"]) <= height for one in texts)
        assert "var(--cell-4)" in drawing and "var(--cell-0)" in drawing


def test_the_steps_of_the_colours() -> None:
    assert [step_of(ratio, BESIDE_SOUND) for ratio in (1.2, 0.97, 0.95, 0.85, 0.75, 0.1)] == [
        0,
        0,
        1,
        2,
        3,
        4,
    ]


def test_of_many_hosts_the_slowest_are_drawn() -> None:
    own = Network(random.Random(4), racks_count=20, rack_size=10, noise=NOISE)
    own.hosts = {"node1905": 0.5}
    matrix = judged(own, 8)
    chart = matrix_of(matrix)
    assert len(chart.labels) == HOSTS_DRAWN and "node1905" in chart.labels
    assert f"Of 200 hosts the {HOSTS_DRAWN} slowest." in html(pairs_report(matrix))


def test_names_from_documents_are_escaped_and_markdown_has_the_tables() -> None:
    own = network()
    every = [m for r in tournament(own.nodes) for m in own.measured(r)]
    matrix = pair_matrix(every, dict.fromkeys(own.nodes[:8], "<b>"), title="net.tcp_stream")
    page = html(pairs_report(matrix))
    assert "<b>" not in page and "&lt;b&gt;" in page
    text = markdown(pairs_report(matrix))
    assert "Every link was measured." in text and "| node000 |" in text


def test_a_full_schedule_is_written_as_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [f"n{at}" for at in range(400)]
    code, out, _ = printed(capsys, "schedule", *nodes, "--full", "--json")
    found = json.loads(out)
    assert code == 0 and found["pairs"] == 79_800 and found["links_share"] == 1.0
    assert {frozenset(pair) for one in found["rounds"] for pair in one} == {
        frozenset(pair) for pair in itertools.combinations(nodes, 2)
    }
    rounds = tournament([f"node{at}" for at in range(10_000)])
    tracemalloc.start()
    try:
        assert sum(len(one) for one in itertools.islice(rounds, 20)) == 20 * 5_000
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A round of so many nodes: all 9,999 of them would take gigabytes.
    assert most < 5e6 and len(rounds) == 9_999
