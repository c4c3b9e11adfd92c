"""Campaigns between nodes on a real API server with real controllers, on simulated nodes."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from itertools import filterfalse, pairwise
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Node, Pod, Secret

from hostbench.base.errors import UsageError
from hostbench.decisions.pair_rounds import matchings
from hostbench.fleet.campaign import Campaign, NodeState, NodeStatus
from hostbench.fleet.kubernetes.engine import KubernetesEngine
from hostbench.fleet.kubernetes.objects import (
    NODE_ANNOTATION,
    PAIR_ANNOTATION,
    PodOptions,
)
from hostbench.fleet.kubernetes.rights import roles
from tests.fleet.campaigns import campaign_of_pairs, net_suite
from tests.fleet.cluster import Cluster
from tests.fleet.jobs import left
from tests.fleet.simulated import REASON, add_namespace
from tests.fleet.test_kubernetes import client

NODES, ROUNDS, KILLS = 64, 3, 6
LIMIT_S = 15.0
PODS = PodOptions(image="hostbench:test")


@pytest.mark.timeout(240)
def test_matchings_of_64_nodes_by_a_client_with_the_listed_rights_that_is_killed(
    simulated: Cluster, tmp_path: Path
) -> None:
    namespace = add_namespace(simulated, "matchings")
    nodes = [f"match-{number:02}" for number in range(NODES)]
    simulated.add_nodes(nodes, labels={"test": "matchings"})
    simulated.make_kubeconfig(tmp_path / "kubeconfig", "pat", group="users")
    for role in roles("pairs"):
        simulated.kubectl("apply", f"--namespace={namespace}", "-f", "-", given=json.dumps(role))
    simulated.kubectl("create", "clusterrolebinding", "pairs", "--clusterrole=pairs", "--user=pat")
    simulated.kubectl(
        "create", "rolebinding", "pairs", "--role=pairs", "--user=pat", f"--namespace={namespace}"
    )
    suite = tmp_path / "between.yaml"
    suite.write_text(json.dumps(net_suite().model_dump(mode="json", exclude_defaults=True)))
    start = (
        "run", str(suite), "--name=match", f"--namespace={namespace}", "--nodes=test=matchings",
        "--pairs=matchings", f"--rounds={ROUNDS}", "--no-documents", "--json",
    )  # fmt: skip
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    began_s = time.monotonic()
    for _ in range(KILLS):
        process = client(simulated, tmp_path, *start, kubeconfig=tmp_path / "kubeconfig")
        time.sleep(chance.uniform(0.5, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = client(simulated, tmp_path, *start, kubeconfig=tmp_path / "kubeconfig")
    out, err = process.communicate()
    took_s = time.monotonic() - began_s
    assert process.returncode == 0, (seed, err)
    found = json.loads(out)["pairs"]
    assert {one["state"] for one in found} == {"measured"}, seed
    expected = {
        f"{number}-{near}+{far}"
        for number, one in enumerate(matchings(nodes, ROUNDS), start=1)
        for near, far in one
    }
    assert {one["node"] for one in found} == expected and len(expected) == ROUNDS * NODES // 2
    # Each was measured once, and no node was in two pairs at a time.
    spans: dict[str, list[tuple[datetime, datetime]]] = {node: [] for node in nodes}
    count: Counter[str] = Counter()
    pods: Any = simulated.client.list(Pod, namespace=namespace)
    for one in filterfalse(is_far, pods):
        pair = one.metadata.annotations[PAIR_ANNOTATION]
        count[pair] += 1
        ended = one.status.containerStatuses[0].state.terminated
        for each in pair.partition("-")[2].split("+"):
            span = one.metadata.creationTimestamp, ended.finishedAt
            spans[each].append(span)
    assert set(count) == expected and set(count.values()) == {1}, seed
    for each in spans.values():
        assert len(each) == ROUNDS
        assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(each))), (seed, each)
    print(f"{len(expected)} pairs, {KILLS} killed clients: {took_s:.1f} s")  # noqa: T201
    done = client(simulated, tmp_path, "clean", "match", f"--namespace={namespace}")
    assert done.communicate()[1] == ""
    assert left(simulated, namespace) == []


def test_racks_are_a_label_of_nodes(simulated: Cluster) -> None:
    by_label = {"topology.kubernetes.io/rack": "r1", "example.com/row": "a"}
    simulated.add_nodes(["racked-1", "racked-2"], labels=by_label)
    simulated.add_nodes(["racked-3"], labels={"topology.kubernetes.io/rack": "r2"})
    simulated.add_nodes(["racked-4"], labels={"topology.kubernetes.io/rack": ""})
    engine = KubernetesEngine("default", None)
    nodes = ["racked-1", "racked-3", "racked-4"]
    assert engine.racks(nodes, None) == {"racked-1": "r1", "racked-3": "r2"}
    assert engine.racks(nodes, "example.com/row") == {"racked-1": "a"}
    assert engine.racks(["racked-4"], None) == {}
    for label, words in {
        "example.com/row": "no node of 1 has this label",
        "a row": "--rack-label 'a row' cannot be a label",
    }.items():
        with pytest.raises(UsageError, match=words):
            engine.racks(["racked-4"], label)


def is_far(pod: Any) -> bool:
    notes = pod.metadata.annotations
    return bool(notes[PAIR_ANNOTATION].endswith(f"+{notes[NODE_ANNOTATION]}"))


def none_is_active(jobs: Mapping[str, Any]) -> bool:
    return all(job.status.active is None for job in jobs.values())


def run(engine: KubernetesEngine, made: Campaign) -> dict[str, NodeStatus]:
    engine.start(made)
    return {status.node: status for status in engine.watch(made.name)}


def test_pairs_that_cannot_be_measured_say_why_and_keep_no_node(simulated: Cluster) -> None:
    namespace = add_namespace(simulated, "pairs")
    nodes = ["pair-one", "pair-2", "pair-3", "pair-fails", "pair-gone", "pair-cordoned"]
    simulated.add_nodes(nodes, labels={"test": "pairs"})
    simulated.cordon("pair-cordoned")
    engine = KubernetesEngine(namespace, PODS)
    made = campaign_of_pairs(
        [
            [("pair-cordoned", "pair-2"), ("pair-one", "pair-fails"), ("pair-gone", "pair-3")],
            [("pair-one", "pair-2"), ("pair-fails", "pair-3")],
        ],
        name="pairs",
        cluster=engine.cluster(),
        time_limit_s=LIMIT_S,
    )
    simulated.delete_node("pair-gone")
    simulated.wait_for(Node, lambda there: "pair-gone" not in there)
    found = run(engine, made)
    assert found["2-pair-one+pair-2"].state is NodeState.MEASURED
    failed = NodeState.FAILED
    assert found["1-pair-gone+pair-3"] == NodeStatus(
        "1-pair-gone+pair-3", NodeState.MISSING, "the cluster has no node pair-gone any more"
    )
    why = f"the far end on pair-fails: {REASON}, exit code 7"
    assert found["1-pair-one+pair-fails"] == NodeStatus("1-pair-one+pair-fails", failed, why)
    why = f"{REASON}, exit code 7"
    assert found["2-pair-fails+pair-3"] == NodeStatus("2-pair-fails+pair-3", failed, why)
    cordoned = "1-pair-cordoned+pair-2"
    why = found[cordoned].reason or ""
    limit = f"not measured within the time limit of {LIMIT_S:.0f} s"
    assert why.startswith(f"pair-cordoned: {limit}: the node "), why
    assert found[cordoned] in engine.status("pairs")
    # Nothing of them keeps a node.
    simulated.wait_for(Job, none_is_active, namespace=namespace)

    # They are measured again, one after another where they share a node.
    simulated.cordon("pair-cordoned", on=False)
    again = ("1-pair-cordoned+pair-2", "1-pair-one+pair-fails", "2-pair-fails+pair-3")
    assert engine.retry("pairs") == again
    found = {status.node: status for status in engine.watch("pairs")}
    assert found["1-pair-cordoned+pair-2"].state is NodeState.MEASURED
    assert [one.state for one in found.values()].count(failed) == 2

    # One whose ends never end is cancelled.
    simulated.add_nodes(["pair-runs"])
    endless = campaign_of_pairs([[("pair-runs", "pair-one")]], name="endless", cluster=made.cluster)
    engine.start(endless)
    for status in engine.watch("endless"):
        if status.state is NodeState.RUNNING:
            break
    secret: Any = simulated.client.get(Secret, "hostbench-pairs-endless", namespace=namespace)
    assert set(secret.data) == {"key", "tls.crt", "tls.key"}
    engine.cancel("endless")
    assert [one.reason for one in engine.status("endless")] == ["cancelled"]
    for name in ("pairs", "endless"):
        engine.clean(name)
    assert left(simulated, namespace) == []
