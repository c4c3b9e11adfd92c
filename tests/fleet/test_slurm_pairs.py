"""Campaigns between nodes on a real Slurm: two nodes that measure the network between them, and
four whose command is a stub."""

import json
import multiprocessing
import os
import random
import signal
import stat
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.fleet.campaign import Campaign, NodeState, NodeStatus
from hostbench.fleet.slurm.engine import SlurmEngine
from hostbench.fleet.slurm.scripts import SlurmOptions
from hostbench.model.result import CampaignMember
from hostbench.results.sealed import read_document
from tests.faults.command import Command
from tests.fleet.campaigns import (
    LONG_BETWEEN,
    campaign_of_pairs,
    check_answer,
    hand_in,
    measured_document,
    net_suite,
)
from tests.fleet.slurm import CLUSTER, Slurm, running
from tests.patience import wait_until

pytestmark = pytest.mark.exhaustive

KILLS, SEED = 5, 23
# What a stub leaves of its run: pair, begin, end. The far end stays until its job ends it.
STUB = """#!/bin/sh
[ "$2" = measure ] || exec sleep 600
begin=$(date +%s.%N)
while [ $# -gt 0 ]; do
    case $1 in
    --pair) pair=$2 ;;
    --results) results=$2 ;;
    --termination-message) message=$2 ;;
    esac
    shift
done
if [ -e "STUBS/$pair/fail" ]; then
    cat "STUBS/$pair/fail" >"$message"
    exit 7
fi
sleep 0.2
cp -R "STUBS/$pair/job/." "$results/"
cp "STUBS/$pair/message" "$message"
echo "$pair $begin $(date +%s.%N)" >>STUBS/ran
"""
TOPOLOGY = """\
SwitchName=leaf1 Nodes=node[1,3]
SwitchName=leaf2 Nodes=node[2,4]
SwitchName=top Switches=leaf[1-2]
"""
TOURNAMENT = [
    [("node1", "node2"), ("node3", "node4")],
    [("node3", "node1"), ("node4", "node2")],
    [("node1", "node4"), ("node2", "node3")],
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running(tmp_path_factory.mktemp("slurm"), 4, TOPOLOGY) as one:
        yield one


@pytest.fixture
def program(slurm: Slurm) -> Path:
    """hostbench on nodes that each have a lock of their own, as hosts have."""
    path = slurm.shared / "hostbench"
    path.write_text(
        f'#!/bin/sh\nexport HOSTBENCH_LOCK="{slurm.directory}/$SLURMD_NODENAME.lock"\n'
        f'exec {sys.executable} -m hostbench "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def engine(slurm: Slurm, program: Path) -> Iterator[SlurmEngine]:
    one = SlurmEngine(slurm.shared, SlurmOptions(program=str(program)))
    yield one
    for name in one.campaigns():
        one.clean(name)
    left = slurm.run("squeue", "-h")
    slurm.run("scancel", "--state=PENDING")
    slurm.run("scancel", "--state=RUNNING")
    assert not left


def test_two_nodes_measure_the_network_between_them(
    slurm: Slurm, program: Path, engine: SlurmEngine, tmp_path: Path
) -> None:
    suite = tmp_path / "between.yaml"
    suite.write_text(json.dumps(net_suite().model_dump(mode="json", exclude_defaults=True)))
    command = Command(tmp_path, HOSTBENCH_SHARED=str(slurm.shared))
    run = command.run(
        "fleet", "run", str(suite), "--engine=slurm", "--name=net", "--nodes=node[1-2]",
        "--pairs=matchings", "--rounds=1", f"--program={program}", "--json", timeout_s=100,
    )  # fmt: skip
    assert run.code == 0, run.errors
    assert "campaign net: 1 pair of 2 nodes in 2 racks\n" in run.errors
    (one,) = run.document["pairs"]
    (path,) = command.results.glob("net/*/*/result.json")
    document = read_document(path.read_bytes(), str(path), "")
    member = document.member
    assert member is not None and member.unit == one["node"] == path.parents[1].name
    racks = {member.node: member.rack, member.far_node: member.far_rack}
    assert racks == {"node1": "leaf1", "node2": "leaf2"}
    assert document.far_host is not None and document.far_host.inventory.allowed_cpus
    (case,) = document.cases
    assert case.figure is not None and case.figure.value > 0, case
    for file in (slurm.shared / "net" / "secret").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text() not in slurm.run("scontrol", "show", "job")
    check_answer(command, "results/net", case, ("node1", "node2"))
    again = command.run("fleet", "run", "--engine=slurm", "--pairs=retest", "--of=net")
    assert again.code == 2, again
    assert command.run("fleet", "clean", "net", "--engine=slurm").code == 0
    assert engine.campaigns() == () and not (slurm.shared / "net").exists()


def test_racks_are_leaf_switches(slurm: Slurm, engine: SlurmEngine) -> None:
    racks = {"node1": "leaf1", "node2": "leaf2", "node3": "leaf1", "node4": "leaf2"}
    assert engine.racks(slurm.nodes, None) == racks
    assert engine.racks(["node2"], None) == {"node2": "leaf2"}
    with pytest.raises(UsageError, match="--rack-label 'row' is for Kubernetes"):
        engine.racks(slurm.nodes, "row")


def test_a_far_end_that_dies_fails_its_pair_and_retry_measures_it(
    slurm: Slurm, engine: SlurmEngine
) -> None:
    made = campaign_of_pairs([[("node1", "node2")]], cluster=CLUSTER, suite=LONG_BETWEEN)
    engine.start(made)
    far = wait_until(lambda: processes(slurm, "far-end"), lambda: log(slurm, made))
    wait_until(lambda: processes(slurm, "--lifeline-fd"), lambda: log(slurm, made))
    os.kill(far[0], signal.SIGKILL)
    (status,) = last(engine, made.name)
    assert status.state is NodeState.FAILED
    reason = "the far end on node2 ended; hostbench fleet retry measures again"
    assert (status.reason or "").startswith(reason), status
    assert engine.retry(made.name) == made.units
    wait_until(lambda: processes(slurm, "--lifeline-fd"), lambda: log(slurm, made))
    engine.cancel(made.name)
    (status,) = last(engine, made.name)
    assert status.state is NodeState.FAILED and "its job was cancelled" in (status.reason or "")
    engine.clean(made.name)
    assert not processes(slurm, "far-end") and not processes(slurm, "--lifeline-fd")


def last(engine: SlurmEngine, name: str) -> list[NodeStatus]:
    found = {status.node: status for status in engine.watch(name)}
    return list(found.values())


def processes(slurm: Slurm, word: str) -> list[int]:
    """Those of nodes with this word in their command line; the shells and Slurm's own apart."""
    found = []
    for pid in slurm.processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(one.startswith(word.encode()) for one in words) and b"srun" not in words[0]:
            found.append(pid)
    return found


def log(slurm: Slurm, made: Campaign) -> str:
    paths = (slurm.shared / made.name / "logs").glob("*")
    return "\n".join(path.read_text(errors="replace") for path in paths)


def test_a_tournament_of_pairs_ends_once_each_whenever_clients_are_killed(
    slurm: Slurm, engine: SlurmEngine, tmp_path: Path
) -> None:
    made = campaign_of_pairs(TOURNAMENT, cluster=CLUSTER, name="many")
    document = measured_document(tmp_path)
    stubs = tmp_path / "stubs"
    for pair in made.pairs:
        member = CampaignMember(
            campaign="many", engine="slurm", cluster=CLUSTER, node=pair.near, lock="host",
            far_node=pair.far, round=pair.round,
        )  # fmt: skip
        hand_in(stubs / pair.name, document, member)
    failing = stubs / made.units[3] / "fail"
    failing.write_text("no space left\n")
    program = stubs / "hostbench"
    program.write_text(STUB.replace("STUBS", str(stubs)))
    program.chmod(0o755)
    stubbed = SlurmEngine(slurm.shared, SlurmOptions(program=str(program)))
    chance = random.Random(SEED)
    for _ in range(KILLS):
        client = multiprocessing.get_context("fork").Process(target=_client, args=(stubbed, made))
        client.start()
        client.join(chance.uniform(0.05, 0.6))
        client.kill()
        client.join()
        client.close()
    stubbed.start(made)
    found = {status.node: status for status in stubbed.watch("many")}
    failed = NodeStatus(made.units[3], NodeState.FAILED, "no space left")
    assert [status for status in found.values() if status.state is not NodeState.MEASURED] == [
        failed
    ]
    failing.unlink()
    assert stubbed.retry("many") == (made.units[3],)
    assert {status.state for status in stubbed.watch("many")} >= {NodeState.MEASURED}
    documents = list(stubbed.documents("many", made.units))
    assert [each.member.unit for each in documents if each.member] == [*made.units]
    ran = [line.split() for line in (stubs / "ran").read_text().splitlines()]
    assert sorted(name for name, _, _ in ran) == sorted(made.units)
    # A node is in one pair at a time.
    for node in made.nodes:
        spans = sorted(
            (float(begin), float(end)) for name, begin, end in ran if node in nodes_of(made, name)
        )
        assert len(spans) == 3
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    stubbed.clean("many")


def nodes_of(made: Campaign, unit: str) -> tuple[str, str]:
    pair = made.pair(unit)
    assert pair is not None
    return pair.nodes


def _client(engine: SlurmEngine, made: Campaign) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    engine.start(made)
    for _ in engine.watch(made.name):
        pass
