"""Campaigns on a real Slurm: four nodes that measure, and a hundred whose command is a stub."""

import getpass
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hostbench.base.errors import HostbenchError, ResourceError, UnreachableError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.fleet.campaign import Campaign, Exclusive, NodeState, NodeStatus
from hostbench.fleet.slurm.engine import SlurmEngine
from hostbench.fleet.slurm.scripts import SlurmOptions
from hostbench.fleet.slurm.states import UNSUBMITTED
from hostbench.host.inventory import _firmware
from hostbench.host.lock import host_lock
from hostbench.model.result import CampaignMember, ResultDocument
from hostbench.model.suite import SuiteCase
from hostbench.results.sealed import read_document
from tests.faults.command import CHECKOUT, Command, Ended, end_of
from tests.fleet.campaigns import MOMENT, campaign, hand_in, measured_document, small_suite
from tests.fleet.slurm import CLUSTER, PARTITION, QOS, Slurm, running
from tests.patience import wait_until
from tests.unit.baseline_documents import of_host, of_hosts

# As all tests of engines: for `make test-all`, which CI runs.
pytestmark = pytest.mark.exhaustive

NOT_WORSE = {"better", "same", "undecided"}
MANY, AT_MOST, KILLS = 100, 8, 20
SEED = 23
FIRMWARE = "SeaBIOS 1.16.3 of 04/01/2014"
# Two real cases of some seconds.
SUITE = small_suite(
    cases=tuple(
        SuiteCase(workload=workload, params=MOMENT | {"duration_s": 0.4})
        for workload in ("cpu.clock", "cpu.fma")
    )
)
# What a stub leaves of its run: node, begin, end.
STUB = """#!/bin/sh
begin=$(date +%s.%N)
while [ $# -gt 0 ]; do
    case $1 in
    --node) node=$2 ;;
    --results) results=$2 ;;
    --termination-message) message=$2 ;;
    esac
    shift
done
stubs=STUBS
while [ -e "$stubs/$node/slow" ]; do sleep 0.1; done
if [ -e "$stubs/$node/fail" ]; then
    cat "$stubs/$node/fail" >&2
    exit 7
fi
sleep 0.1
cp -R "$stubs/$node/job/." "$results/"
cp "$stubs/$node/message" "$message"
echo "$node $begin $(date +%s.%N)" >>"$stubs/ran"
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> ResultDocument:
    """What stubs hand in, but for its member: a real one."""
    return measured_document(tmp_path_factory.mktemp("embedded"))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running(tmp_path_factory.mktemp("slurm"), 4) as one:
        yield one


@pytest.fixture
def engine(slurm: Slurm) -> Iterator[SlurmEngine]:
    """The engine whose nodes measure; what a test leaves is removed."""
    program = slurm.shared / "hostbench"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hostbench "$@"\n')
    program.chmod(0o755)
    one = SlurmEngine(slurm.shared, SlurmOptions(program=str(program), partition=PARTITION))
    yield one
    for name in one.campaigns():
        one.clean(name)
    # Jobs of a test that failed are not the next one's.
    left = slurm.run("squeue", "-h")
    slurm.run("scancel", "--state=PENDING")
    slurm.run("scancel", "--state=RUNNING")
    assert not left


class Stubs:
    """What the nodes of a campaign do instead of measuring."""

    def __init__(self, slurm: Slurm, document: ResultDocument, made: Campaign) -> None:
        self.slurm, self.campaign = slurm, made
        self.directory = slurm.directory / f"stubs-{made.name}"
        for node in made.nodes:
            self.hand_in(node, document)
        self.program = self.directory / "hostbench"
        self.program.write_text(STUB.replace("STUBS", str(self.directory)))
        self.program.chmod(0o755)
        self.engine = SlurmEngine(slurm.shared, SlurmOptions(program=str(self.program)))

    def hand_in(self, node: str, document: ResultDocument, **changes: str) -> None:
        """Let a node hand in a document of its own, or of the place that `changes` makes of it."""
        of = {"campaign": self.campaign.name, "cluster": CLUSTER, "node": node} | changes
        member = CampaignMember(engine="slurm", lock="host", **of)
        hand_in(self.directory / node, document, member)

    def ran(self) -> list[tuple[str, float, float]]:
        lines = (self.directory / "ran").read_text().splitlines()
        return [(node, float(a), float(b)) for node, a, b in map(str.split, lines)]

    def mark(self, node: str, name: str, text: str = "") -> Path:
        path = self.directory / node / name
        path.write_text(text)
        return path


@pytest.fixture
def stubs(slurm: Slurm, document: ResultDocument, engine: SlurmEngine) -> Stubs:
    assert engine.campaigns() == ()  # and that fixture cleans up
    name = f"stub-{random.randrange(10**6)}"
    return Stubs(slurm, document, campaign(name=name, cluster=CLUSTER, nodes=slurm.nodes))


def ended(engine: SlurmEngine, name: str) -> dict[str, NodeStatus]:
    """The last status of each node, once all have ended."""
    return {status.node: status for status in engine.watch(name)}


def now(engine: SlurmEngine, name: str, node: str) -> NodeStatus:
    return next(one for one in engine.status(name) if one.node == node)


def becomes(engine: SlurmEngine, name: str, node: str, state: NodeState) -> NodeStatus:
    def found() -> NodeStatus | None:
        one = now(engine, name, node)
        return one if one.state is state else None

    return wait_until(found, lambda: engine.status(name))  # type: ignore[return-value]


def most_at_once(times: list[tuple[float, float]]) -> int:
    steps = sorted([(begin, 1) for begin, _ in times] + [(end, -1) for _, end in times])
    return max(itertools.accumulate(step for _, step in steps))


def test_two_real_campaigns_at_once_never_overlap(slurm: Slurm, engine: SlurmEngine) -> None:
    """Eight nodes' jobs on one host, each alone on its node, and on the host by its lock."""
    made = [
        campaign(name=name, cluster=engine.cluster(), suite=SUITE, nodes=engine.nodes(None))
        for name in ("real-a", "real-b")
    ]
    assert made[0].cluster == CLUSTER and made[0].nodes == slurm.nodes
    for one in made:
        engine.start(one)
    assert "OverSubscribe=NO" in slurm.run("scontrol", "show", "job")
    documents = []
    for one in made:
        history: dict[str, list[NodeState]] = {node: [] for node in one.nodes}
        for status in engine.watch(one.name):
            history[status.node].append(status.state)
        last = engine.status(one.name)
        assert [status.state for status in last] == [NodeState.MEASURED] * 4, last
        # Each change once, in order; a quick node may never be seen running.
        order = [NodeState.WAITING, NodeState.RUNNING, NodeState.MEASURED]
        for states in history.values():
            assert [state for state, _ in itertools.groupby(states)] == [
                state for state in order if state in states
            ]
        found = list(engine.documents(one.name, one.nodes))
        assert [document.digest for document in found] == [
            status.result.digest for status in last if status.result
        ]
        assert [document.member.node for document in found if document.member] == [*one.nodes]
        documents += found
    times = []
    for document in documents:
        assert document.job.finished_unix_s is not None
        times.append((document.job.created_unix_s, document.job.finished_unix_s))
        assert [case.verdict for case in document.cases] and len(document.cases) == 2
    assert most_at_once(times) == 1, times
    # Slurm alone would have let four nodes, and so this host four times, measure at once.
    assert len(times) == 8


def test_a_campaign_measures_as_well_as_runs_by_hand(
    slurm: Slurm, engine: SlurmEngine, tmp_path: Path
) -> None:
    """On the same CPUs, which this Slurm does not divide; one after another, by the host's lock."""
    suite = tmp_path / "nodes.yaml"
    suite.write_text(json.dumps(SUITE.model_dump(mode="json", exclude_defaults=True)))
    command = Command(tmp_path, HOSTBENCH_SHARED=str(slurm.shared))
    by_hand = tmp_path / "by-hand"
    started = [
        command.start("run", str(suite), f"--results={by_hand}", "--wait=120") for _ in slurm.nodes
    ]
    made = command.run(
        "fleet", "run", str(suite), "--name=compared", "--engine=slurm", f"--queue={PARTITION}",
        f"--program={slurm.shared / 'hostbench'}", timeout_s=120,
    )  # fmt: skip
    assert made.code == 0, made.errors
    for process in started:
        ended_by_hand = end_of(process, 120)
        assert ended_by_hand.code == 0, ended_by_hand.errors
    sides = (str(by_hand), str(command.results / "compared"))
    compared = command.run("compare", *sides, "--require=not-worse", "--json")
    assert compared.code == 0, compared.output + compared.errors
    (comparison,) = compared.document["comparisons"]
    words = [case["word"] for case in comparison["cases"]]
    assert len(words) == len(SUITE.cases) and NOT_WORSE.issuperset(words), words
    documents = [
        read_document(path.read_bytes(), str(path), "")
        for side in sides
        for path in Path(side).rglob("result.json")
    ]
    times = [(one.job.created_unix_s, one.job.finished_unix_s or math.inf) for one in documents]
    assert len(times) == 2 * len(slurm.nodes) and most_at_once(times) == 1, times


def test_jobs_have_the_options_that_sbatch_would_have(
    slurm: Slurm, engine: SlurmEngine, tmp_path: Path
) -> None:
    """Partition, account, reservation and QOS of the command line reach each job."""
    suite = tmp_path / "small.yaml"
    suite.write_text("name: small\ncases: [{workload: cpu.clock}]\n")
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=repair", "Nodes=node[2-3]",
        f"Users={getpass.getuser()}", "StartTime=now", "Duration=60", "Flags=MAINT,IGNORE_JOBS",
    )  # fmt: skip
    command = Command(tmp_path, HOSTBENCH_SHARED=str(slurm.shared))
    try:
        made = command.run(
            "fleet", "run", str(suite), "--name=opts", "--engine=slurm", "--nodes=node[2-3]",
            f"--partition={PARTITION}", "--account=physics", "--reservation=repair", f"--qos={QOS}",
            "--detach", "--at-most=1", f"--program={slurm.shared / 'hostbench'}",
        )  # fmt: skip
        assert made.code == 0, made.errors
        jobs = slurm.run("scontrol", "show", "job", "--oneliner").splitlines()
        own = [line for line in jobs if "Comment=hostbench_campaign_opts" in line.replace(" ", "_")]
        assert len(own) == 2
        for line in own:
            for words in (f"Partition={PARTITION}", "Account=physics", "Reservation=repair"):
                assert f" {words} " in line, line
        other = command.run(
            "fleet", "run", str(suite), "--name=other", "--engine=slurm", "--qos=hihg", "--detach"
        )
        assert other.code == 2 and other.last_line == (
            "hostbench: sbatch: Batch job submission failed: Invalid qos specification "
            "(--qos=hihg); sacctmgr show qos lists them"
        )
        assert "other" not in engine.campaigns()
    finally:
        engine.clean("opts")
        slurm.run("scontrol", "delete", "ReservationName=repair")


@pytest.mark.timeout(240)
@pytest.mark.exhaustive
@pytest.mark.engine
def test_a_hundred_nodes_end_once_each_whenever_clients_are_killed(
    tmp_path: Path, document: ResultDocument
) -> None:
    with running(tmp_path, MANY) as slurm:
        made = campaign(name="many", cluster=CLUSTER, nodes=slurm.nodes, at_most=AT_MOST)
        stubs = Stubs(slurm, document, made)
        chance = random.Random(SEED)
        began_s = time.monotonic()
        for _ in range(KILLS):
            client = multiprocessing.get_context("fork").Process(target=_client, args=(stubs,))
            client.start()
            client.join(chance.uniform(0.05, 0.6))
            client.kill()
            client.join()
            client.close()
        stubs.engine.start(made)
        last = ended(stubs.engine, "many")
        took_s = time.monotonic() - began_s
        assert {one.state for one in last.values()} == {NodeState.MEASURED} and len(last) == MANY
        ran = stubs.ran()
        assert sorted(node for node, _, _ in ran) == sorted(slurm.nodes)
        assert most_at_once([(begin, end) for _, begin, end in ran]) <= AT_MOST
        assert len(slurm.run("squeue", "-h", "-t", "all", "-o", "%i").split()) == MANY
        documents = list(stubs.engine.documents("many", slurm.nodes))
        assert [one.member.node for one in documents if one.member] == [*slurm.nodes]
        print(f"{MANY} nodes, {KILLS} killed clients: {took_s:.1f} s")  # noqa: T201
        stubs.engine.clean("many")


def _client(stubs: Stubs) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stubs.engine.start(stubs.campaign)
    for _ in stubs.engine.watch(stubs.campaign.name):
        pass


def test_a_client_killed_while_it_submits(stubs: Stubs) -> None:
    name, engine = stubs.campaign.name, stubs.engine

    def start_and_die() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "_sbatch", _dies_after(engine._sbatch))
            with pytest.raises(_KilledError):
                engine.start(stubs.campaign)

    start_and_die()
    becomes(engine, name, "node1", NodeState.MEASURED)
    assert [one.reason for one in engine.status(name)] == [None, *[UNSUBMITTED] * 3]
    # watch() alone goes on, with the job that was there.
    assert {one.state for one in ended(engine, name).values()} == {NodeState.MEASURED}
    assert sorted(node for node, _, _ in stubs.ran()) == [*stubs.slurm.nodes]
    # One that is cancelled instead leaves no job.
    engine.clean(name)
    stubs.mark("node1", "slow")
    start_and_die()
    engine.cancel(name)
    wait_until(lambda: not stubs.slurm.run("squeue", "-h"))
    assert [one.state for one in ended(engine, name).values()].count(NodeState.MISSING) >= 3
    # One that was killed before it planned any job.
    (stubs.slurm.shared / name / "1.json").unlink()
    (stubs.directory / "node1" / "slow").unlink()
    for node in stubs.slurm.nodes:
        (stubs.slurm.shared / name / "nodes" / node / "end.json").unlink(missing_ok=True)
    assert {one.reason for one in engine.status(name)} == {UNSUBMITTED}
    assert {one.state for one in ended(engine, name).values()} == {NodeState.MEASURED}


def test_nodes_take_turns_and_one_that_is_down_gives_its_turn_away(stubs: Stubs) -> None:
    engine, run = stubs.engine, stubs.slurm.run
    made = replace(stubs.campaign, at_most=1)
    run("scontrol", "update", "NodeName=node1", "State=DOWN", "Reason=fan")
    engine.start(made)
    for status in engine.watch(made.name):
        if status.node == "node4" and status.state is NodeState.MEASURED:
            break
    assert now(engine, made.name, "node1").reason == "its node is DOWN: fan"
    stubs.slurm.resume()
    assert {one.state for one in ended(engine, made.name).values()} == {NodeState.MEASURED}
    assert most_at_once([(begin, end) for _, begin, end in stubs.ran()]) == 1


class _KilledError(Exception):
    pass


def _dies_after(call: Callable[..., object]) -> Callable[..., object]:
    def calls(*arguments: object) -> object:
        call(*arguments)
        raise _KilledError

    return calls


def test_nodes_that_are_down_drained_or_busy_say_why(stubs: Stubs) -> None:
    name, engine, run = stubs.campaign.name, stubs.engine, stubs.slurm.run
    run("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=disk broken")
    run("scontrol", "update", "NodeName=node3", "State=DRAIN", "Reason=repair")
    busy = run(
        "sbatch", "--parsable", "--nodelist=node4", "--exclusive", "--output=/dev/null",
        "--wrap=sleep 600",
    ).strip()  # fmt: skip
    wait_until(lambda: "RUNNING" in run("squeue", "-h", "-j", busy, "-o", "%T"))
    try:
        engine.start(stubs.campaign)
        becomes(engine, name, "node1", NodeState.MEASURED)
        for node, words in (
            ("node2", "its node is DOWN: disk broken"),
            ("node3", "its node is DRAINED: repair"),
        ):
            assert now(engine, name, node) == NodeStatus(node, NodeState.WAITING, words)
        assert now(engine, name, "node4").reason == "other jobs use its node"
        run("scancel", busy)
        run("scontrol", "update", "NodeName=node2", "State=RESUME")
        becomes(engine, name, "node2", NodeState.MEASURED)
        becomes(engine, name, "node4", NodeState.MEASURED)
        engine.cancel(name)
        assert ended(engine, name)["node3"] == NodeStatus(
            "node3", NodeState.MISSING, "its job was cancelled"
        )
        assert len(stubs.ran()) == 3
    finally:
        stubs.slurm.resume()
    assert engine.retry(name) == ("node3",)
    assert {one.state for one in ended(engine, name).values()} == {NodeState.MEASURED}
    assert sorted(node for node, _, _ in stubs.ran()) == [*stubs.slurm.nodes]
    assert engine.retry(name) == ()


def test_a_node_that_fails_is_retried_and_counts_once(stubs: Stubs) -> None:
    name, engine, run = stubs.campaign.name, stubs.engine, stubs.slurm.run
    stubs.mark("node1", "slow")
    fails = stubs.mark("node3", "fail", "first\nthe disk is full\n")
    engine.start(stubs.campaign)
    becomes(engine, name, "node1", NodeState.RUNNING)
    assert ended_of(engine, name, "node3") == "its job failed: the disk is full"
    run("scontrol", "update", "NodeName=node1", "State=DOWN", "Reason=gone")
    assert becomes(engine, name, "node1", NodeState.FAILED).reason == "its node failed"
    run("scontrol", "update", "NodeName=node1", "State=RESUME")
    (stubs.directory / "node1" / "slow").unlink()
    becomes(engine, name, "node2", NodeState.MEASURED)
    becomes(engine, name, "node4", NodeState.MEASURED)
    fails.unlink()
    assert engine.retry(name) == ("node1", "node3")
    assert {one.state for one in ended(engine, name).values()} == {NodeState.MEASURED}
    # The node is handed out once more: its document counts once.
    again = campaign(**vars(stubs.campaign))
    engine.start(again)
    assert {one.state for one in engine.status(name)} == {NodeState.MEASURED}
    assert not run("squeue", "-h")


def ended_of(engine: SlurmEngine, name: str, node: str) -> str | None:
    return becomes(engine, name, node, NodeState.FAILED).reason


def test_a_real_failure_and_a_missing_program_are_one_line(
    slurm: Slurm, engine: SlurmEngine
) -> None:
    # A case that the programs do not know: hostbench itself says so.
    wrong = small_suite(cases=(SuiteCase(workload="cpu.nothing"),))
    made = campaign(name="wrong", cluster=CLUSTER, nodes=("node1",), suite=wrong)
    engine.start(made)
    reason = ended(engine, "wrong")["node1"].reason
    assert reason is not None and "nothing" in reason and "\n" not in reason
    missing = SlurmEngine(slurm.shared, SlurmOptions(program="/nowhere/hostbench"))
    missing.start(campaign(name="nowhere", cluster=CLUSTER, nodes=("node1",)))
    status = ended(missing, "nowhere")["node1"]
    assert status.state is NodeState.FAILED
    assert "/nowhere/hostbench: not found" in str(status.reason)


def test_a_host_that_somebody_else_measures(slurm: Slurm, engine: SlurmEngine) -> None:
    """A run by hand has the host until the node's time is over; then the node can be retried."""
    made = campaign(name="busy", cluster=CLUSTER, nodes=("node1",), time_limit_s=2.0)
    interrupt = Interrupt()
    with host_lock(0, interrupt) as lock:
        lock.name_holder("by-hand")
        engine.start(made)
        status = ended(engine, "busy")["node1"]
    interrupt.close()
    assert status.state is NodeState.FAILED
    assert str(status.reason).startswith("this host is busy with job 'by-hand' of pid")
    assert engine.retry("busy") == ("node1",)
    assert ended(engine, "busy")["node1"].state is NodeState.MEASURED


def test_slurm_that_forgot_its_jobs(stubs: Stubs) -> None:
    """A controller that lost its state: what was measured stays, the rest is missing."""
    name, engine = stubs.campaign.name, stubs.engine
    for node in ("node3", "node4"):
        stubs.mark(node, "slow")
    engine.start(stubs.campaign)
    for node in ("node1", "node2"):
        becomes(engine, name, node, NodeState.MEASURED)
    stubs.slurm.forget()
    for node in ("node3", "node4"):
        (stubs.directory / node / "slow").unlink()
    found = ended(engine, name)
    assert [found[node].state for node in ("node1", "node2")] == [NodeState.MEASURED] * 2
    for node in ("node3", "node4"):
        state, reason = found[node].state, str(found[node].reason)
        # Its stub may have handed in its document before the node ended the unknown job.
        assert state is NodeState.MEASURED or (
            state is NodeState.MISSING and re.search(r"forgotten its job \d+", reason)
        )
    engine.retry(name)
    assert {one.state for one in ended(engine, name).values()} == {NodeState.MEASURED}


def test_clean_leaves_nothing(stubs: Stubs) -> None:
    name, engine = stubs.campaign.name, stubs.engine
    stubs.mark("node1", "slow")
    engine.start(stubs.campaign)
    becomes(engine, name, "node1", NodeState.RUNNING)
    assert engine.campaigns() == (name,)
    engine.clean(name)
    assert engine.campaigns() == ()
    assert not (stubs.slurm.shared / name).exists()
    assert not stubs.slurm.run("squeue", "-h")
    with pytest.raises(UsageError, match="there is no campaign"):
        engine.status(name)


def test_the_command_from_run_to_clean(slurm: Slurm, engine: SlurmEngine, tmp_path: Path) -> None:
    suite = tmp_path / "two.yaml"
    suite.write_text(
        "name: two\nidle: {policy: force}\nrepeats: {min_trials: 1, max_trials: 1}\n"
        "cases: [{workload: cpu.clock, params: {duration_s: 0.05, threads: 1}}]\n"
    )
    command = Command(tmp_path, HOSTBENCH_SHARED=str(slurm.shared))

    def fleet(*arguments: str) -> Ended:
        return command.run("fleet", *arguments, "--engine=slurm")

    ended = fleet(
        "run", str(suite), "--name=by-hand", "--nodes=node[1-2]", "--at-most=1", "--json",
        f"--program={slurm.shared / 'hostbench'}", f"--queue={PARTITION}",
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    assert [one["state"] for one in ended.document["nodes"]] == ["measured"] * 2
    assert fleet("status", "by-hand", "--json").document == ended.document
    other = fleet("run", "--name=by-hand", "--queue=another")
    assert other.code == 2
    assert f"begun with --queue {PARTITION}, not with --queue another" in other.last_line
    paths = fleet("results", "by-hand", "--json").document["documents"]
    for node, path in paths.items():
        found = read_document(Path(path).read_bytes(), path, "")
        assert found.member is not None and found.member.node == node
    assert sorted(paths) == ["node1", "node2"]
    assert fleet("retry", "by-hand").output == ""
    assert fleet("cancel", "by-hand", "--json").document == ended.document
    assert fleet("clean", "by-hand").output == "campaign by-hand is removed\n"
    assert fleet("list").output == "" and not (slurm.shared / "by-hand").exists()
    # What was collected stays.
    assert all(Path(path).exists() for path in paths.values())
    del command.environment["HOSTBENCH_SHARED"]
    assert "--shared DIRECTORY" in fleet("list").last_line


def test_the_prolog_lets_no_job_onto_a_node_that_is_not_qualified(
    slurm: Slurm, stubs: Stubs, document: ResultDocument
) -> None:
    """docs/slurm: the Prolog drains a node until a campaign, which it lets pass, qualified it."""
    run, qualified = slurm.run, slurm.directory / "qualified"
    qualified.mkdir()
    root = slurm.directory / "root"
    dmi = root / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    for part, text in {"vendor": "SeaBIOS", "version": "1.16.3 ", "date": "04/01/2014"}.items():
        (dmi / f"bios_{part}").write_text(f"{text}\n")
    firmware = _firmware(root)
    assert firmware == FIRMWARE
    prolog = slurm.directory / "prolog.sh"
    prolog.write_text(
        f"#!/bin/sh\nexport HOSTBENCH_QUALIFIED={qualified} HOSTBENCH_DMI={dmi}\n"
        f"export SLURM_CONF={slurm.configuration} PATH={os.environ['PATH']}\n"
        f"exec {CHECKOUT / 'docs' / 'slurm' / 'prolog.sh'}\n"
    )
    prolog.chmod(0o755)

    def submitted(node: str) -> None:
        run("sbatch", "--job-name=user", f"--nodelist={node}", "--output=/dev/null", "--wrap=true")

    def drained_for(words: str) -> Callable[[], bool]:
        return lambda: words in run("sinfo", "-h", "-N", "-o", "%E")

    def states() -> list[str]:
        return run("squeue", "-h", "-t", "all", "--name=user", "-o", "%T").split()

    with slurm.settings(f"Prolog={prolog}"):
        engine = stubs.engine
        engine.start(stubs.campaign)
        assert {one.state for one in ended(engine, stubs.campaign.name).values()} == {
            NodeState.MEASURED
        }
        submitted("node1")
        wait_until(drained_for("hostbench: not qualified"))
        (qualified / "node2").write_text(f"{document.host.kernel}\n{firmware}\n")
        (qualified / "node3").write_text(f"1.2.3\n{firmware}\n")
        (qualified / "node4").write_text(f"{document.host.kernel}\nSeaBIOS 1.2 of 01/01/2010\n")
        submitted("node2")
        wait_until(lambda: "COMPLETED" in states())
        for node, words in (
            ("node3", "hostbench: qualified with kernel 1.2.3"),
            ("node4", "hostbench: qualified with firmware SeaBIOS 1.2 of 01/01/2010"),
        ):
            submitted(node)
            wait_until(drained_for(words))
        assert states().count("COMPLETED") == 1
        run("scancel", "--name=user")
        wait_until(lambda: set(states()) <= {"COMPLETED", "CANCELLED"})
    slurm.resume()


def test_qualify_sh_qualifies_the_nodes_that_are_as_expected_and_no_other(
    slurm: Slurm, stubs: Stubs, tmp_path: Path
) -> None:
    """docs/slurm: a campaign, its documents and a baseline of the model decide."""
    rng = random.Random(SEED)
    reference = tmp_path / "reference"
    for one in of_hosts([rng.lognormvariate(0, 0.005) for _ in range(8)]):
        (reference / one.job.id).mkdir(parents=True)
        (reference / one.job.id / "result.json").write_text(one.model_dump_json())
    command = Command(tmp_path, HOSTBENCH_SHARED=str(slurm.shared))
    baseline = tmp_path / "model.json"
    made = command.run("baseline", "make", str(reference), f"--output={baseline}")
    assert made.code == 0, made.errors

    name = stubs.campaign.name
    low = of_host(21, 0.8)
    for node, document in {
        "node1": of_host(20, firmware=FIRMWARE),
        "node2": low,
        "node4": of_host(22),
    }.items():
        shutil.rmtree(stubs.directory / node)
        stubs.hand_in(node, document)
    stubs.mark("node3", "fail", "cannot write results: no space left")
    stubs.engine.start(stubs.campaign)
    ended(stubs.engine, name)
    assert command.run("fleet", "results", name, "--engine=slurm").code == 0
    # A document that somebody has removed since.
    shutil.rmtree(command.results / name / "node4")

    programs, qualified = tmp_path / "bin", tmp_path / "qualified"
    programs.mkdir()
    qualified.mkdir()
    (programs / "hostbench").write_text(f'#!/bin/sh\nexec {sys.executable} -m hostbench "$@"\n')
    (programs / "hostbench").chmod(0o755)
    environment = command.environment | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOSTBENCH_QUALIFIED": str(qualified),
    }

    def qualify(campaign: str) -> "subprocess.CompletedProcess[str]":
        script = CHECKOUT / "docs" / "slurm" / "qualify.sh"
        return subprocess.run(
            [script, campaign, baseline, command.results],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip

    # All were qualified before, and one that is not of the campaign.
    for node in (*slurm.nodes, "another"):
        (qualified / node).write_text("1.2.3\n")
    done = qualify(name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "node1: qualified",
        "node2: not qualified (hostbench baseline check: exit code 20)",
        "node3: not qualified (failed)",
        "node4: not qualified (hostbench baseline check: exit code 2)",
    ]
    kept = {path.name: path.read_text() for path in qualified.iterdir()}
    assert kept == {"node1": f"{low.host.kernel}\n{FIRMWARE}\n", "another": "1.2.3\n"}

    # Nothing is taken away where nothing is known.
    failed = qualify("none")
    assert failed.returncode != 0 and "there is no campaign 'none'" in failed.stderr
    assert sorted(path.name for path in qualified.iterdir()) == ["another", "node1"]


def test_bad_input_is_one_line(
    stubs: Stubs, document: ResultDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, made, shared = stubs.engine, stubs.campaign, stubs.slurm.shared

    def refused(error: type[HostbenchError], call: Callable[[], object], *words: str) -> None:
        with pytest.raises(error) as caught:
            call()
        for word in words:
            assert word in caught.value.message

    refused(
        UsageError, lambda: SlurmEngine(tmp_path / "none"), "is no directory", "all nodes share"
    )
    refused(UsageError, lambda: engine.nodes("node[1-2],nodee3"), "no node 'nodee3'", "'node3'?")
    refused(UsageError, lambda: engine.nodes("node[1"), "there is no node")
    assert engine.nodes("node[2-3],node1") == ("node2", "node3", "node1")
    assert engine.racks(engine.nodes(None), None) == {}, "this cluster has no topology"
    other = SlurmEngine(shared, SlurmOptions(partition="al"))
    refused(UsageError, lambda: other.nodes(None), "--queue 'al'", "did you mean 'all'")
    refused(UsageError, lambda: other.start(made), "invalid partition", "--queue")
    assert engine.campaigns() == ()  # so that the name is free for a second try
    reserved = SlurmEngine(shared, SlurmOptions(reservation="mine"))
    refused(UsageError, lambda: reserved.start(made), "reservation", "scontrol show reservation")
    taint = replace(made, exclusive=Exclusive.TAINT)
    refused(UsageError, lambda: engine.start(taint), "Slurm has no taints")
    elsewhere = replace(made, cluster="other")
    refused(UsageError, lambda: engine.start(elsewhere), "'other'", CLUSTER)
    refused(UsageError, lambda: engine.campaign("../shared"), "there is no campaign")

    stubs.hand_in("node2", document, cluster="other")
    engine.start(made)
    ended(engine, made.name)
    list(engine.documents(made.name, ["node1", "node3"]))
    refused(
        UsageError, lambda: list(engine.documents(made.name, ["node2"])),
        f"of campaign {made.name}, cluster {CLUSTER}, node node2 is of campaign",
        "cluster other, node node2",
    )  # fmt: skip
    another = replace(made, at_most=1)
    refused(UsageError, lambda: engine.start(another), "another campaign of this name")
    copied = shared / "copied"
    shutil.copytree(shared / made.name, copied)
    text = (copied / "campaign.json").read_text()
    (copied / "campaign.json").write_text(text.replace(CLUSTER, "other"))
    refused(UsageError, lambda: engine.status("copied"), "Slurm cluster 'other'")
    shutil.rmtree(copied)

    with monkeypatch.context() as patch:
        patch.delenv("SLURM_CONF")
        refused(UnreachableError, lambda: SlurmEngine(shared).cluster(), "set SLURM_CONF")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        refused(ResourceError, lambda: engine.nodes(None), "sinfo is missing", "login node")
    assert os.environ["SLURM_CONF"]
