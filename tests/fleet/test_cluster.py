"""The cluster of the tests itself: its nodes and pods do what tests of campaigns build on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Node, Pod

from tests.fleet.cluster import DURATION, EXIT_CODE, MESSAGE, Cluster, name_of
from tests.fleet.jobs import end_of, is_running, job_on, pod_of, wait_for_jobs


def is_unschedulable(pods: Mapping[str, Pod]) -> bool:
    return any(
        one.reason == "Unschedulable"
        for pod in pods.values()
        for one in (pod.status and pod.status.conditions) or []
    )


def test_a_pod_ends_as_its_annotations_say(cluster: Cluster) -> None:
    cluster.add_nodes(["ends-0", "ends-7"], capacity={"nvidia.com/gpu": "8"})
    node = cluster.client.get(Node, "ends-0")
    assert node.status is not None and node.status.allocatable is not None
    assert node.status.allocatable["nvidia.com/gpu"] == "8"
    message = json.dumps({"digest": "sha256:0", "text": 'a "quoted" word: #'})
    for code in (0, 7):
        annotations = {EXIT_CODE: str(code), MESSAGE: message, DURATION: "500ms"}
        cluster.client.create(job_on(f"ends-{code}", annotations=annotations))
    ended = wait_for_jobs(cluster, ["ends-0", "ends-7"])
    assert (ended["ends-0"], ended["ends-7"]) == ("Complete", "Failed")
    for code in (0, 7):
        pod = pod_of(cluster, f"ends-{code}")
        assert end_of(pod) == (code, message)
        assert pod.spec is not None and pod.spec.nodeName == f"ends-{code}"


def test_a_pod_has_the_log_that_a_test_gives_it(cluster: Cluster) -> None:
    cluster.add_nodes(["logs"])
    cluster.client.create(job_on("logs", annotations={EXIT_CODE: "0"}))
    wait_for_jobs(cluster, ["logs"])
    pod = name_of(pod_of(cluster, "logs"))
    cluster.log_of = lambda namespace, pod: f"{namespace}/{pod} says ±1\n"
    assert cluster.kubectl("logs", pod) == f"default/{pod} says ±1\n"
    assert list(cluster.client.log(pod)) == [f"default/{pod} says ±1\n"]


def test_a_pod_without_an_exit_code_runs_until_it_gets_one(cluster: Cluster) -> None:
    cluster.add_nodes(["runs"])
    cluster.client.create(job_on("runs"))
    cluster.wait_for(Pod, is_running, labels={"job-name": "runs"})
    cluster.restart_apiserver()
    pod = name_of(pod_of(cluster, "runs"))
    cluster.client.patch(Pod, pod, {"metadata": {"annotations": {EXIT_CODE: "3"}}})
    assert wait_for_jobs(cluster, ["runs"])["runs"] == "Failed"
    assert end_of(pod_of(cluster, "runs")) == (3, None)


def test_taints_and_cordons_keep_pods_away_until_they_are_gone(cluster: Cluster) -> None:
    cluster.add_nodes(["tainted", "cordoned"])
    cluster.taint("tainted", "somebody.else/owns")
    cluster.cordon("cordoned")
    for node in ("tainted", "cordoned"):
        cluster.client.create(job_on(node))
        cluster.wait_for(Pod, is_unschedulable, labels={"job-name": node})
    cluster.untaint("tainted", "somebody.else/owns")
    cluster.cordon("cordoned", on=False)
    for node in ("tainted", "cordoned"):
        cluster.wait_for(Pod, is_running, labels={"job-name": node})
        cluster.delete_node(node)
    cluster.wait_for(Node, lambda nodes: not {"tainted", "cordoned"} & nodes.keys())


def test_all_ends_with_the_cluster_whatever_happens(tmp_path: Path, cluster: Cluster) -> None:
    # The session's cluster stands for what a second one must leave alone.
    own = Cluster(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fail_in(own)
    assert own.pids() == []
    for program in ("etcd", "apiserver", "controllers", "scheduler", "kwok"):
        assert (tmp_path / f"{program}.log").exists()
    for pid in cluster.pids():
        os.kill(pid, 0)


def fail_in(own: Cluster) -> None:
    with own:
        assert len(own.pids()) == 5
        raise ZeroDivisionError
