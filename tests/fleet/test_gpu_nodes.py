"""Campaigns on nodes with GPUs and parts of GPUs: extended resources of simulated nodes."""

from lightkube.resources.core_v1 import Pod

from hostbench.fleet.campaign import Campaign, NodeState
from hostbench.fleet.kubernetes.engine import KubernetesEngine
from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, PodOptions
from hostbench.model.suite import SuiteCase
from tests.fleet.campaigns import small_suite
from tests.fleet.cluster import Cluster
from tests.fleet.decoded import decoded
from tests.fleet.simulated import add_namespace

DEVICES = {
    "gpu-cards": {"nvidia.com/gpu": "2"},
    "gpu-parts": {"nvidia.com/mig-1g.10gb": "7"},
    "gpu-none": {},
}


def campaign(engine: KubernetesEngine, name: str, workload: str, limit_s: float) -> Campaign:
    suite = small_suite(cases=(SuiteCase(workload=workload),))
    return Campaign(name, engine.cluster(), suite, tuple(DEVICES), time_limit_s=limit_s)


def test_pods_ask_for_all_gpus_of_their_node_where_the_suite_measures_them(
    simulated: Cluster,
) -> None:
    for name, capacity in DEVICES.items():
        simulated.add_nodes([name], capacity)
    namespace = add_namespace(simulated, "gpus")
    engine = KubernetesEngine(namespace, PodOptions(image="hostbench:test"))
    for name, workload in (("gpus", "gpu.fma"), ("cpus", "cpu.clock")):
        made = campaign(engine, name, workload, 300.0)
        engine.start(made)
        ends = {status.node: status.state for status in engine.watch(name)}
        assert set(ends.values()) == {NodeState.MEASURED}, ends
        requested = {}
        for pod in simulated.client.list(Pod, namespace=namespace, labels={CAMPAIGN_LABEL: name}):
            assert pod.spec is not None and pod.spec.nodeName is not None
            resources = pod.spec.containers[0].resources
            assert resources is not None and resources.requests == resources.limits
            wanted = {key: size for key, size in (resources.limits or {}).items() if "/" in key}
            requested[pod.spec.nodeName] = wanted
        assert requested == (DEVICES if name == "gpus" else {node: {} for node in DEVICES})
        engine.clean(name)

    # Somebody else has one of the cards.
    trainer = {
        "metadata": {"name": "trainer", "namespace": namespace},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": "gpu-cards"},
            "containers": [
                {"name": "one", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            ],
        },
    }
    simulated.client.create(decoded(Pod, trainer))
    simulated.wait_for(
        Pod,
        lambda pods: any(pod.spec and pod.spec.nodeName for pod in pods.values()),
        namespace=namespace,
    )
    made = campaign(engine, "taken", "gpu.fma", 6.0)
    engine.start(made)
    found = {status.node: status for status in engine.watch("taken")}
    assert found["gpu-cards"].state is NodeState.FAILED
    assert "Insufficient nvidia.com/gpu" in (found["gpu-cards"].reason or "")
    assert found["gpu-parts"].state is NodeState.MEASURED
    simulated.client.delete(Pod, "trainer", namespace=namespace)
    engine.clean("taken")
