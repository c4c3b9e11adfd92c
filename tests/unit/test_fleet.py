"""Which hosts of a campaign are bad: words, error rates, refusals, the command and its exit
codes."""

import csv
import io
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet import hosts
from benchmarks.tables import README
from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from hostbench.cli.decisions import Require
from hostbench.cli.fleet_report import exit_code
from hostbench.decisions.baseline import made_of
from hostbench.decisions.baseline_files import content_of
from hostbench.decisions.fleet import checked_fleet
from hostbench.decisions.fleet_hosts import hosts_of
from hostbench.decisions.fleet_words import (
    LOST_NAMED,
    fleet_headline,
    fleet_sentences,
    lost_groups,
    missing_sentences,
)
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.tolerance import limit_rank
from hostbench.model.baseline import HostWord
from hostbench.model.decision import JobFigures
from hostbench.model.fleet import FleetCheck
from hostbench.model.host import Boot
from hostbench.model.result import CampaignMember
from hostbench.model.summary import Verdict
from hostbench.results.fleet_csv import COLUMNS, write_fleet_csv
from hostbench.results.sealed import read_document, sealed
from tests.each import each
from tests.unit.baseline_documents import of_host
from tests.unit.baseline_hosts import CPU, KEY, host_jobs
from tests.unit.fleet_hosts import BEGAN_UNIX_S, campaign, member

NOW_UNIX_S = BEGAN_UNIX_S + 1e5
BARE = KEY.model_copy(update={"is_guest": False})
SLOW = {3: (CPU[1], 0.1), 17: (20, 0.1)}


def checked(jobs: list[JobFigures], nodes: tuple[str, ...] = ()) -> FleetCheck:
    return checked_fleet(jobs, NOW_UNIX_S, nodes, {})


def made(
    hosts: int = 60,
    slow: Mapping[int, tuple[int, float]] | None = None,
    seed: int = 1,
    **more: object,
) -> list[JobFigures]:
    """A campaign of hosts of their own that differ by 1 %."""
    options: dict[str, object] = {"within": 0.004, "key": BARE} | more
    return campaign(random.Random(seed), hosts, 0.01, slow, **options)  # type: ignore[arg-type]


def names(fleet: FleetCheck, word: HostWord = HostWord.LOW) -> set[str]:
    return {host.host for host in fleet.of(word)}


def changed(jobs: list[JobFigures], **changes: object) -> list[JobFigures]:
    return [job.model_copy(update=changes) for job in jobs]


def without_figures(
    job: JobFigures, verdict: Verdict = Verdict.DISTURBED, culprit: str | None = None
) -> JobFigures:
    lost = {"headline": None, "low": None, "high": None, "verdict": verdict, "culprit": culprit}
    return job.model_copy(
        update={"cases": {k: one.model_copy(update=lost) for k, one in job.cases.items()}}
    )


def test_slow_hosts_are_low_in_what_is_slow_and_first() -> None:
    fleet = checked(made(slow=SLOW))
    assert names(fleet) == {"node-0003", "node-0017"}
    assert [host.host for host in fleet.hosts[:2]] == ["node-0003", "node-0017"] or [
        host.host for host in fleet.hosts[:2]
    ] == ["node-0017", "node-0003"]
    for host in fleet.hosts[:2]:
        (worst, *_) = host.off
        place = SLOW[int(host.host[-4:])][0]
        assert worst.case == f"{place:08x}"
        assert worst.expected is not None and worst.usual is not None
        assert worst.value < worst.expected < worst.usual
        assert worst.lost_ratio == pytest.approx(0.1, abs=0.04)
        assert worst.low is not None and worst.low < worst.value
        assert host.is_sure
    assert fleet_headline(fleet) == (
        "2 of 60 hosts are low, surely (error rate: at most 1 % of sound hosts are called low, and "
        "of those surely low at most 5 % are sound)."
    )


def test_at_most_one_sound_host_of_a_hundred_is_low() -> None:
    """Of 1,200 sound hosts 12 are expected at most; 22 or more would be seen in 1 of 200 such
    tests at a rate of 1 %."""
    low = sum(len(names(checked(made(hosts=60, seed=seed)))) for seed in range(20))
    assert low < 22


def test_many_slow_hosts_do_not_hide_each_other() -> None:
    slow = dict.fromkeys(range(0, 200, 10), (CPU[0], 0.1))
    found = names(checked(made(hosts=200, slow=slow)))
    assert {f"node-{number:04}" for number in slow} <= found


def test_a_host_differs_in_facts_and_low_hosts_have_some_in_common() -> None:
    slow = dict.fromkeys((4, 8, 12, 16), (CPU[0], 0.12))
    jobs = made(
        slow=slow, facts=lambda n: {"memory channels": "7 × 4800 MT/s"} if n in slow else {}
    )
    fleet = checked(jobs)
    assert names(fleet) == {f"node-{number:04}" for number in slow}
    assert len(fleet.populations) == 1, "four hosts are no population"
    (fact,) = fleet.hosts[0].facts
    assert (fact.fact, fact.alike, fact.of) == ("memory channels", 3, 59)
    (common,) = fleet.common
    assert (common.low, common.lows, common.others, common.of_others) == (4, 4, 0, 56)
    text = "\n".join(fleet_sentences(fleet))
    assert "differs in memory channels 7 × 4800 MT/s (usual 8 × 4800 MT/s; 3 of 59 others" in text
    assert "4 of 4 low hosts have memory channels 7 × 4800 MT/s, and 0 of 56 others." in text


@each(
    ("fact", "value"),
    [
        ("firmware", "1.9 (2026-06-01)"),
        ("memory channels", "8 × 4400 MT/s"),
        ("stepping", "9"),
    ],
)
def test_two_populations_are_named_and_judged_apart(fact: str, value: str) -> None:
    def factor(number: int, workload: str) -> float:
        return 0.93 if workload == "cpu.fma" and number % 3 == 0 else 1.0

    slow = {1: (CPU[0], 0.1), 3: (CPU[0], 0.1)}
    jobs = made(90, slow, facts=lambda n: {fact: value} if n % 3 == 0 else {}, factor=factor)
    fleet = checked(jobs)
    first, second = fleet.populations
    assert (first.hosts, second.hosts, second.beside) == (60, 30, 0)
    assert second.facts == ((fact, value),)
    assert [one.title.split()[0] for one in second.differs] == ["cpu.fma"] * 3
    assert all(one.is_worse for one in second.differs)
    assert names(fleet) == {"node-0001", "node-0003"}, "each low in its own population"
    assert f"30 hosts with {fact} {value} form a population separate" in "\n".join(
        fleet_sentences(fleet)
    )
    assert exit_code(fleet, Require.NOT_WORSE) is ExitCode.WORSE


def test_a_fact_without_an_effect_makes_no_population() -> None:
    jobs = made(90, facts=lambda n: {"kernel": "6.8.0" if n % 2 else "6.1.0"})
    assert len(checked(jobs).populations) == 1


def test_other_processors_are_not_compared() -> None:
    other = BARE.model_copy(update={"cpu": "Another CPU"})
    jobs = made(30, seed=4)
    jobs += [
        job.model_copy(update={"key": other, "machine": f"m{n}", "member": member(100 + n)})
        for n, job in enumerate(changed(made(10, factor=lambda _n, _w: 0.5, seed=2), digest=None))
    ]
    fleet = checked(jobs)
    assert [one.hosts for one in fleet.populations] == [30, 10]
    assert fleet.word is HostWord.AS_EXPECTED
    assert all(one.beside is None for one in fleet.populations)


def test_one_job_of_a_guest_makes_memory_suspect_and_another_decides() -> None:
    at = 3  # mem.triad
    within = 0.05

    def jobs(count: int, slower: float) -> list[JobFigures]:
        return campaign(
            random.Random(4), 80, 0.01, {5: (at, slower)}, jobs=count, within=within, key=KEY
        )

    once = checked(jobs(1, 0.5))
    assert names(once, HostWord.SUSPECT) == {"node-0005"} and not names(once)
    assert exit_code(once, Require.DECIDED) is ExitCode.UNDECIDED
    assert exit_code(once, Require.NOT_WORSE) is ExitCode.OK
    assert "Measure the 1 host again" in "\n".join(fleet_sentences(once))
    twice = checked(jobs(2, 0.5))
    assert names(twice) == {"node-0005"}


def test_a_node_that_was_measured_twice_counts_once() -> None:
    jobs = made(20, jobs=2)
    fleet = checked([*jobs, *jobs])
    assert len(fleet.hosts) == 20 and fleet.jobs == 40
    assert all(len(host.jobs) == 2 for host in fleet.hosts)


def test_a_baseline_of_more_hosts_is_the_reference(tmp_path: Path) -> None:
    """All hosts of a small campaign are slow, which they cannot show each other."""
    rng = random.Random(6)
    known = [
        job.model_copy(update={"key": BARE})
        for number in range(100, 130)
        for job in host_jobs(rng, number, 0.01)
    ]
    folder = tmp_path / "hostbench/baselines"
    folder.mkdir(parents=True)
    (folder / "model.json").write_bytes(content_of(made_of(known)))
    jobs = made(8, factor=lambda _n, workload: 0.9 if workload.startswith("cpu.") else 1.0)
    environment = {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    fleet = checked_fleet(jobs, NOW_UNIX_S, (), environment)
    assert len(names(fleet)) == 8
    assert fleet.populations[0].baseline == (str(folder / "model.json"),)
    assert not names(checked(jobs)), "beside each other they are alike"
    many = checked_fleet(
        made(60, factor=lambda _n, w: 0.9 if w.startswith("cpu.") else 1.0),
        NOW_UNIX_S,
        (),
        environment,
    )
    assert not many.populations[0].baseline
    assert any("all of them may be low" in note for note in many.notes)


@each(
    ("hosts", "word", "code"),
    [(5, HostWord.NO_REFERENCE, ExitCode.UNDECIDED), (6, HostWord.AS_EXPECTED, ExitCode.OK)],
)
def test_few_hosts(hosts: int, word: HostWord, code: ExitCode) -> None:
    fleet = checked(made(hosts))
    assert fleet.word is word and exit_code(fleet, Require.DECIDED) is code
    if word is HostWord.NO_REFERENCE:
        assert "each has fewer than 5 others" in fleet_headline(fleet)


def test_all_disturbed_names_who_did_it() -> None:
    jobs = [without_figures(job, culprit=f"containerd, pid {n}") for n, job in enumerate(made(9))]
    fleet = checked(jobs)
    assert fleet.word is HostWord.NO_REFERENCE
    assert fleet_headline(fleet).startswith(
        "None of 9 hosts can be judged: no document has a clean or noisy figure, and most cases "
        "were disturbed by containerd;"
    )
    assert exit_code(fleet, Require.NOT_WORSE) is ExitCode.NOT_COMPARABLE
    (group,) = lost_groups(fleet)
    assert (group.cases, len(group.hosts), group.culprit) == (9 * 40, 9, "containerd")


def test_what_no_host_can_measure_is_not_missing() -> None:
    def without_the_last(jobs: list[JobFigures]) -> list[JobFigures]:
        found = []
        for job in jobs:
            (*_, last) = job.cases
            skipped = without_figures(job, Verdict.SKIPPED).cases[last]
            found.append(job.model_copy(update={"cases": {**job.cases, last: skipped}}))
        return found

    everyone = without_the_last(made(20, seed=4))
    assert exit_code(checked(everyone), Require.COMPLETE) is ExitCode.OK
    one = [*without_the_last(made(20, seed=4)[:1]), *made(20, seed=4)[1:]]
    assert exit_code(checked(one), Require.COMPLETE) is ExitCode.NOT_COMPARABLE


def test_what_is_lost_is_named() -> None:
    jobs = made(20)
    jobs[4] = without_figures(jobs[4], culprit="stress-ng, pid 7, of docker-3fa9c12b7d01")
    jobs[5] = without_figures(jobs[5], Verdict.FAILED)
    some = dict(list(jobs[6].cases.items())[:-2])
    jobs[6] = jobs[6].model_copy(update={"cases": some})
    fleet = checked(jobs, ("node-0001", "node-0777"))
    assert fleet.missing == ("node-0777",)
    text = "\n".join(fleet_sentences(fleet))
    assert "40 cases disturbed, by stress-ng, of docker-3fa9c12b7d01, on 1 host: node-0004" in text
    assert "40 cases failed, on 1 host: node-0005" in text
    assert "2 cases missing, on 1 host: node-0006" in text
    assert "1 node without a document: node-0777." in text
    assert exit_code(fleet, Require.COMPLETE) is ExitCode.NOT_COMPARABLE
    assert exit_code(fleet, Require.NOT_WORSE) is ExitCode.OK
    rows = list(csv.DictReader(io.StringIO(as_csv(fleet))))
    assert len(rows) == 20 * 40 + 1
    assert sum(row["culprit"].startswith("stress-ng") for row in rows) == 40


def test_what_is_lost_in_a_hundred_ways_is_counted() -> None:
    jobs = [
        without_figures(job, culprit=f"stress-ng, of docker-{n:012x}")
        for n, job in enumerate(made(100))
    ]
    sentences = list(missing_sentences(checked(jobs)))
    assert len(sentences) == LOST_NAMED + 1
    assert sentences[-1].startswith(f"{40 * (100 - LOST_NAMED):,} more cases without a figure")


def test_a_run_by_hand_on_a_node_is_a_job_of_that_node() -> None:
    jobs = made(20)
    by_hand = jobs[4].model_copy(update={"member": None, "job": "by-hand", "digest": "sha256:x"})
    hosts, _ = hosts_of([*jobs, by_hand], NOW_UNIX_S)
    assert len(hosts) == 20
    assert [len(host.jobs) for host in hosts if host.name == "node-0004"] == [2]


def test_the_lock_of_each_host_is_named() -> None:
    jobs = made(12)
    lease = member(3).model_copy(update={"lock": "lease"})
    jobs[3] = jobs[3].model_copy(update={"member": lease})
    jobs.append(jobs[3].model_copy(update={"member": member(3), "job": "2", "digest": "sha256:2"}))
    jobs[5] = jobs[5].model_copy(update={"member": None})
    fleet = checked(jobs)
    expected: dict[str, tuple[str, ...]] = {f"node-{n:04}": ("host",) for n in range(12)}
    expected |= {"node-0003": ("host", "lease"), "node-0005": ()}
    assert fleet.locks == expected
    rows = {row["host"]: row["locks"] for row in csv.DictReader(io.StringIO(as_csv(fleet)))}
    assert rows == {host: " ".join(locks) for host, locks in expected.items()}
    words = (
        "the host's lock file, on 10 hosts: node-0000, node-0001, node-0002 and 7 more; "
        "the host's lock file and a Lease object, on 1 host: node-0003; "
        "unknown (the document names no lock), on 1 host: node-0005"
    )
    assert f"Lock held: {words}." in list(fleet_sentences(fleet))
    assert "Lock held: the host's lock file, on 12 hosts." in list(
        fleet_sentences(checked(made(12)))
    )


def as_csv(fleet: FleetCheck) -> str:
    stream = io.StringIO()
    write_fleet_csv(fleet, stream)
    return stream.getvalue()


@each(
    ("spoil", "why"),
    [
        (
            lambda jobs: [
                job.model_copy(update={"member": member(n, cluster="a" if n < 7 else "b")})
                for n, job in enumerate(jobs)
            ],
            "of 2 clusters, 'a' (7 documents), 'b' (3 documents)",
        ),
        (
            lambda jobs: [*changed(jobs[:8], suite="quick"), *jobs[8:]],
            "of 2 suites, 'quick' (8 documents), 'full' (2 documents): hosts are compared",
        ),
        (lambda jobs: jobs[:1], "the document is of one host, node-0000, and a fleet has several"),
    ],
)
def test_what_cannot_be_judged_together(
    spoil: Callable[[list[JobFigures]], list[JobFigures]], why: str
) -> None:
    with pytest.raises(UsageError) as caught:
        checked(spoil(made(10)))
    assert why in caught.value.message and "\n" not in caught.value.message


def test_clocks_that_are_ahead_and_cloned_machines_are_named() -> None:
    jobs = changed(made(10), member=None)
    jobs[2] = jobs[2].model_copy(update={"created_unix_s": NOW_UNIX_S + 7300})
    jobs[3] = jobs[3].model_copy(update={"machine": jobs[4].machine})
    fleet = checked(jobs)
    assert len(fleet.hosts) == 10
    ahead, cloned = sorted(fleet.notes)
    assert "began in the future by this clock, by up to 2 h 01 min: node-0002." in ahead
    assert cloned.startswith("2 hosts have one machine id (node-0003, node-0004)")


def test_machines_of_one_name_are_kept_apart_or_refused() -> None:
    jobs = made(10)
    # A node that got another machine.
    other = jobs[3].model_copy(update={"machine": "0123456789abcdef", "digest": "sha256:other"})
    fleet = checked([*jobs, other])
    own = {f"node-0003 ({one.machine[:6]})" for one in (jobs[3], other)}
    assert own < {host.host for host in fleet.hosts} and len(fleet.hosts) == 11
    assert any(
        note.startswith("1 node had more than one machine: node-0003") for note in fleet.notes
    )
    # A pod that sees no machine id is the node's all the same.
    pod = jobs[4].model_copy(update={"machine": jobs[4].host, "digest": "sha256:pod"})
    assert len(checked([*jobs, pod]).hosts) == 10

    # Copies of one image: nothing but their boots tells them apart.
    def boot(job: JobFigures, name: str, up_s: float, at_s: float) -> JobFigures:
        moment = {"boot": Boot(id=name, since_s=up_s), "created_unix_s": NOW_UNIX_S - at_s}
        return job.model_copy(update={**moment, "digest": f"sha256:{name}{at_s}"})

    rest, one = changed(jobs[1:], member=None), changed(jobs[:1], member=None)[0]
    again = [boot(one, "a", 100.0, 9000.0), boot(one, "a", 5100.0, 4000.0), boot(one, "b", 60.0, 0)]
    assert len(checked([*rest, *again]).hosts) == 10
    with pytest.raises(UsageError) as caught:
        checked([*rest, *again, boot(one, "c", 7000.0, 100.0)])
    assert "two machines with one name and one machine id" in caught.value.message
    assert "\n" not in caught.value.message


def test_other_versions_are_named() -> None:
    jobs = made(10)
    jobs[2] = jobs[2].model_copy(update={"versions": {"cpu": "0.0.9", "mem": "0.1.0"}})
    assert "1 job of 10 are of other program versions." in checked(jobs).notes


def test_the_limit_of_any_distribution() -> None:
    """The table of Hahn and Meeker, A.16."""
    assert [limit_rank(n) for n in (10, 58, 59, 92, 93, 1000)] == [0, 0, 1, 1, 2, 39]


# ---- the command ----


def stored(root: Path, hosts: int = 12, slow: int | None = 4) -> None:
    """Documents of a campaign as they are collected: `root`/job/result.json."""
    rng = random.Random(3)
    for number in range(hosts):
        factor = 0.85 if number == slow else rng.lognormvariate(0, 0.005)
        document = of_host(number, factor)
        document = sealed(document.model_copy(update={"digest": None, "member": member(number)}))
        job = root / document.job.id
        job.mkdir(parents=True)
        (job / "result.json").write_text(document.model_dump_json())


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("campaign")
    stored(root)
    return root


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(["fleet", "report", *arguments])
    out, error = capsys.readouterr()
    return code, out, error


def test_the_command_names_the_low_host(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "fleet.html"
    code, out, _ = run(capsys, str(collected), "--html", str(page))
    first, second, *_ = out.splitlines()
    assert first.startswith("1 of 12 hosts is low, surely (error rate: at most 1 % of sound")
    assert second.startswith("node-0004: ") and code == ExitCode.WORSE
    text = page.read_text()
    assert "1 of 12 hosts is low" in text and "<script" not in text
    code, out, _ = run(capsys, str(collected), "--json")
    answer = json.loads(out)
    assert answer["word"] == "low" and answer["hosts"][0]["host"] == "node-0004"
    assert answer["campaigns"] == ["qualify"]
    code, out, _ = run(capsys, str(collected), "--csv")
    assert out.splitlines()[0] == ",".join(COLUMNS) and "node-0004,low,True," in out
    code, out, _ = run(capsys, str(collected), "--markdown")
    assert out.startswith("# qualify\n") and "**Which hosts are bad? 1 of 12 hosts is low" in out


@each(
    ("command", "codes"),
    [
        ("report", {0, 2, 3, 20, 21, 22}),
        ("pairs", {0, 2, 3, 20, 21}),
        ("schedule", {0, 2, 3}),
        ("qualify", {0, 1, 2, 3, 8, 20, 21}),
    ],
)
def test_help_has_the_exit_codes_of_the_command(
    capsys: pytest.CaptureFixture[str], command: str, codes: set[int]
) -> None:
    assert run_command_line(["fleet", command, "--help"]) == 0
    _, _, table = capsys.readouterr().out.partition("Exit codes:")
    lines = [line.split(maxsplit=1) for line in table.splitlines() if line.strip()]
    assert {int(code) for code, _ in lines} == codes
    own = {int(code): meaning for code, meaning in lines}
    assert own[0] != ExitCode.OK.meaning and own[2] == ExitCode.USAGE.meaning
    assert "orchestrator" not in own.get(8, "")


def test_documents_may_be_files_or_directories_of_hosts(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for job in collected.glob("*/result.json"):
        host = tmp_path / "by-host" / job.parent.name[9:15] / job.parent.name
        host.mkdir(parents=True)
        (host / "result.json").write_bytes(job.read_bytes())
        (tmp_path / "flat").mkdir(exist_ok=True)
        (tmp_path / "flat" / f"{job.parent.name}.json").write_bytes(job.read_bytes())
    files = [str(path) for path in (tmp_path / "flat").iterdir()]
    for given in ([str(tmp_path / "by-host")], [str(tmp_path / "flat")], files):
        code, out, _ = run(capsys, *given)
        assert code == ExitCode.WORSE and out.startswith("1 of 12 hosts is low")


def test_damaged_and_foreign_documents_are_named_and_left_out(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, *_ = sorted(collected.glob("*/result.json"))
    by_hand = json.loads(whole.read_text()) | {"suite": None}
    damaged = {
        "cut.json": (whole.read_bytes()[:1000], "cut short or damaged"),
        "by-hand.json": (json.dumps(by_hand).encode(), "was changed after it was written"),
        "report.json": (b'{"kind": "hostbench.fleet"}', "is a 'hostbench.fleet' and not"),
        "empty.json": (b"", "its 0 bytes are not one JSON document"),
        "list.json": (b"[1]", "is no JSON object"),
    }
    flat, by_id = tmp_path / "flat", tmp_path / "by-id"
    flat.mkdir()
    for job in collected.glob("*/result.json"):
        (flat / f"{job.parent.name}.json").write_bytes(job.read_bytes())
        (by_id / job.parent.name).mkdir(parents=True)
        (by_id / job.parent.name / "result.json").write_bytes(job.read_bytes())
    for number, (name, (content, _)) in enumerate(damaged.items()):
        (flat / name).write_bytes(content)
        job_id = f"20261126T{number:06}Z-full-dead"
        (by_id / job_id).mkdir()
        (by_id / job_id / "result.json").write_bytes(content)
    files = [str(path) for path in flat.iterdir()]
    page = tmp_path / "page.html"
    # A second time, the answer about a directory is from its index.
    for given in ([str(flat)], files, [str(by_id)], [str(by_id)]):
        code, out, errors = run(capsys, *given, "--html", str(page))
        assert code == ExitCode.WORSE and not errors and out.startswith("1 of 12 hosts is low")
        lines = [line for line in out.splitlines() if line.startswith("Left out: ")]
        assert len(lines) == len(damaged)
        for name, (_, why) in damaged.items():
            place = name if given != [str(by_id)] else "-full-dead/result.json"
            assert any(place in line and why in line for line in lines), (name, lines)
        assert page.read_text().count("is a &#39;hostbench.fleet&#39; and not") == 1
    # With `complete` it is missing; CSV and JSON have it, too.
    (flat / f"{sorted(collected.iterdir())[4].name}.json").unlink()  # the low host
    code, out, _ = run(capsys, str(flat), "--require=complete", "--json")
    assert code == ExitCode.NOT_COMPARABLE and len(json.loads(out)["refused"]) == len(damaged)
    _, out, _ = run(capsys, str(flat), "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["host_word"] == "left out"]
    assert sorted(Path(row["reason"].split()[0]).name for row in rows) == sorted(damaged)
    # Nothing but such documents is an error, in one line.
    for name in damaged:
        code, out, error = run(capsys, str(flat / name))
        assert code == ExitCode.USAGE and not out and error.count("\n") == 1 and name in error
    code, _, error = run(capsys, *(str(flat / name) for name in damaged))
    assert code == ExitCode.USAGE and "nor can 4 others be used" in error


def test_jobs_of_several_hosts_may_have_one_id(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, job in enumerate(sorted(collected.glob("*/result.json"))):
        document = read_document(job.read_bytes(), str(job), "")
        same = replace(document.job, id="20261126T000000Z-full-0001")
        host = tmp_path / f"node-{number:04}" / same.id
        host.mkdir(parents=True)
        changed = document.model_copy(update={"job": same, "digest": None})
        (host / "result.json").write_text(sealed(changed).model_dump_json())
    code, out, _ = run(capsys, str(tmp_path))
    assert code == ExitCode.WORSE and out.startswith("1 of 12 hosts is low")


def test_nodes_without_a_document_are_missing(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes").write_text("node-0001\nnode-0099\n")
    _, out, _ = run(capsys, str(collected), "--nodes", str(tmp_path / "nodes"))
    assert "1 node without a document: node-0099." in out


@each(
    ("arguments", "why"),
    [
        (("{empty}",), "holds no job with a document"),
        (("{empty}/no.json",), "there is no "),
        (("{root}", "--campaign", "other"), "is of it; they are of qualify"),
        (("{root}", "--campaign=qualify", "--campaign=qualfy"), "did you mean 'qualify'?"),
        (("{root}", "--suite", "other"), "leave none of them"),
        (("{root}", "--markdown", "--csv"), "give one of --json, --csv and --markdown"),
        (("{root}", "--html", "{empty}"), "is a directory"),
        (("{root}", "--nodes", "{empty}/no"), "cannot be read: No such file or directory"),
        (("{one}",), "is of one host, node-0000, and a fleet has several"),
    ],
)
def test_refusals_are_one_line(
    collected: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    why: str,
) -> None:
    places = {
        "root": collected,
        "empty": tmp_path,
        "one": sorted(collected.glob("*/result.json"))[0],
    }
    code, out, error = run(capsys, *(one.format(**places) for one in arguments))
    assert code == ExitCode.USAGE and not out
    assert why in error and error.count("\n") == 1


def test_the_index_keeps_what_the_answer_needs(collected: Path) -> None:
    """A second look reads no document."""
    with FigureIndex(collected) as index:
        index.refresh()
    with FigureIndex(collected) as index:
        (first, *_) = index.jobs(index.ids())
    assert first.key is not None and first.member == member(0)
    assert isinstance(first.member, CampaignMember)
    figures = [one for one in first.cases.values() if one.headline is not None]
    assert figures and all(one.verdict is Verdict.CLEAN or one.verdict for one in figures)
    assert any(one.limit is not None for one in figures)


def test_the_tables_in_the_pages_are_those_of_the_figures() -> None:
    """`python -m benchmarks.fleet.hosts --readme` writes them."""
    rows = hosts.kept()
    found = [row for row in rows if row["table"] == "found"]
    mixed = [row for row in rows if row["table"] == "mixed"]
    readme, page = README.read_text(), hosts.PAGE.read_text()
    for lines, text in (
        (hosts.host_table(found), readme),
        (hosts.population_table(mixed), readme),
        (hosts.short_table(found), page),
    ):
        assert "\n".join(lines) in text


def test_a_campaign_is_judged_in_a_moment() -> None:
    """Half a second on a Zen 4; comparing every host with every other one would take minutes."""
    jobs = made(250, slow=SLOW)
    began = time.process_time()
    checked(jobs)
    assert time.process_time() - began < 5
