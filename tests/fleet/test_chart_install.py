"""The Helm chart on a real API server with its controllers, scheduler and admission. The nodes are
simulated: a pod there runs nothing, and ends as an annotation says.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube.resources.core_v1 import Pod

from tests.fleet.cluster import DURATION, EXIT_CODE, Cluster
from tests.fleet.helm import CHART, ROOT, Helm, need
from tests.patience import wait_until

pytestmark = pytest.mark.timeout(300)

NAMESPACE, CAMPAIGNS = "bench", "bench-campaigns"
WAIT = ("--wait", "--timeout=90s", "--namespace", NAMESPACE)
# What a release may leave: kinds of all that the chart makes.
KINDS = (
    "statefulset,pod,service,configmap,secret,persistentvolumeclaim,networkpolicy,"
    "role,rolebinding,serviceaccount"
)
CLIENT = f"system:serviceaccount:{CAMPAIGNS}:hostbench-campaigns"
NODE = f"system:serviceaccount:{CAMPAIGNS}:hostbench-node"
QUALIFICATION = ROOT / "charts/qualification/nvsentinel.yaml"


@pytest.fixture(scope="module")
def helm(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    need()
    return Helm(
        tmp_path_factory.mktemp("helm"),
        cluster.kubeconfig,
        (
            "image.registry=registry.example/hostbench",
            "storage.className=prepared",
            f"campaigns.namespace={CAMPAIGNS}",
        ),
    )


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace that admits restricted pods only, a node, and volumes."""
    cluster.add_nodes(["chart-1"])
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl(
        "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"
    )
    volumes: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"chart-{number}"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "prepared",
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": f"/nowhere/{number}"},
            },
        }
        for number in range(3)
    ]
    cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(volumes))
    yield NAMESPACE
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    names = [one["metadata"]["name"] for one in volumes]
    cluster.kubectl("delete", "persistentvolume", *names, "--wait=false")
    cluster.delete_node("chart-1")


def free_volumes(cluster: Cluster) -> None:
    """Let the volumes be taken again, as a storage class that makes new ones would."""
    for number in range(3):
        patch = json.dumps({"spec": {"claimRef": None}})
        cluster.kubectl("patch", "persistentvolume", f"chart-{number}", "--patch", patch)


def secrets(cluster: Cluster) -> dict[str, Any]:
    """The data of each Secret of the stack, by name."""
    printed = cluster.kubectl("get", "secret", "-n", NAMESPACE, "-o", "json")
    items = json.loads(printed)["items"]
    return {
        one["metadata"]["name"]: one["data"]
        for one in items
        if not one["type"].startswith("helm.sh/")
    }


def wait_until_left(cluster: Cluster, *wanted: str) -> None:
    """Wait until the namespace of the stack has this, beside what Kubernetes itself puts there.
    Pods end after what made them."""

    def left() -> set[str]:
        names = cluster.kubectl("get", KINDS, "-n", NAMESPACE, "-o", "name").split()
        return set(names) - {"configmap/kube-root-ca.crt", "serviceaccount/default"}

    wait_until(lambda: left() == set(wanted), left)


def run_of_helm_test(cluster: Cluster, helm: Helm, exit_code: int) -> tuple[bool, str]:
    """Whether `helm test` is content with a pod that ends with this code, and what it says."""
    process = helm.start("test", "hostbench", "-n", NAMESPACE, "--timeout=60s")
    pod = ("pod", "hostbench-test", "-n", NAMESPACE)
    cluster.kubectl("wait", "--for=create", "--timeout=60s", "-n", NAMESPACE, "pod/hostbench-test")
    cluster.kubectl("annotate", *pod, f"{EXIT_CODE}={exit_code}", f"{DURATION}=0s")
    output, errors = process.communicate()
    cluster.kubectl("delete", *pod, "--ignore-not-found")
    return process.returncode == 0, output + errors


def test_a_release_from_its_installation_to_its_end(
    cluster: Cluster, helm: Helm, namespace: str
) -> None:
    def of_orchestrator() -> dict[str, str]:
        printed = cluster.kubectl("get", "pod", "-n", namespace, "hostbench-0", "-o", "json")
        environment = json.loads(printed)["spec"]["containers"][0]["env"]
        return {one["name"]: one["value"] for one in environment}

    # The stack runs in a namespace that admits only what has no rights.
    printed = helm("install", "hostbench", CHART, *WAIT, *helm.options())
    assert f"https://hostbench.{namespace}:8000" in printed
    made = secrets(cluster)
    assert set(made) == {"hostbench-keys", "hostbench-tls", "hostbench-datasource"}

    # helm test: as its pod ends, so does the command.
    for exit_code in (1, 0):
        content, words = run_of_helm_test(cluster, helm, exit_code)
        assert content == (exit_code == 0), words

    # An upgrade keeps every key and the certificate, and restarts the pod only where it must.
    printed = helm("upgrade", "hostbench", CHART, *WAIT, *helm.options("results.keepDays=30"))
    assert "has been upgraded" in printed and secrets(cluster) == made
    assert of_orchestrator()["HOSTBENCH_KEEP_RESULTS_DAYS"] == "30"
    # Another name in the certificate makes another one, and the pods start anew. Values that were
    # set before stay set.
    helm(
        "upgrade", "hostbench", CHART, *WAIT,
        "--reset-then-reuse-values", "--set-json", 'tls.names=["bench.example"]',
    )  # fmt: skip
    assert of_orchestrator()["HOSTBENCH_KEEP_RESULTS_DAYS"] == "30"
    named = secrets(cluster)
    assert named["hostbench-tls"] != made["hostbench-tls"]
    assert named["hostbench-keys"] == made["hostbench-keys"]

    # Data and keys outlive the release, and the next installation goes on with them.
    helm("uninstall", "hostbench", *WAIT)
    claims = [
        f"persistentvolumeclaim/hostbench-{name}" for name in ("results", "redis", "influxdb")
    ]
    wait_until_left(cluster, *claims, "secret/hostbench-keys", "secret/hostbench-tls")
    helm("install", "hostbench", CHART, *WAIT, *helm.options('tls.names=["bench.example"]'))
    assert secrets(cluster) == named
    helm("uninstall", "hostbench", *WAIT)
    cluster.kubectl(
        "delete", "pvc,secret", "-n", namespace, "-l", "app.kubernetes.io/instance=hostbench"
    )
    wait_until_left(cluster)

    # Nothing is left where nothing is to be kept.
    free_volumes(cluster)
    helm("install", "hostbench", CHART, *WAIT, *helm.options("storage.keep=false"))
    helm("uninstall", "hostbench", *WAIT)
    wait_until_left(cluster)

    def of_cluster() -> str:
        return cluster.kubectl(
            "get", "namespace,clusterrole,clusterrolebinding", "-o", "name",
            "-l", "app.kubernetes.io/part-of=hostbench",
        )  # fmt: skip

    wait_until(lambda: of_cluster() == "", of_cluster)


def test_an_existing_secret_is_looked_into(cluster: Cluster, helm: Helm, namespace: str) -> None:
    given = ["api_key", "service_key", "keys", "host_keys"]
    literals = [f"--from-literal={name}=0123456789abcdef" for name in given]
    cluster.kubectl("create", "secret", "generic", "mine", "-n", namespace, *literals)
    settings = ("keys.existingSecret=mine", "influxdb.enabled=false")
    code, _, errors = helm.run("install", "other", CHART, *WAIT, *helm.options(*settings))
    assert code != 0
    assert "Secret mine of keys.existingSecret lacks redis_password" in errors
    cluster.kubectl("delete", "secret", "mine", "-n", namespace)
    wait_until_left(cluster)


@pytest.fixture(scope="module", params=["lease", "host"])
def campaigns(request: pytest.FixtureRequest, cluster: Cluster, helm: Helm) -> Iterator[str]:
    """What campaigns need, by the form of their lock."""
    lock: str = request.param
    command = ("template", "hostbench", CHART, "--show-only", "templates/campaigns.yaml")
    objects = helm(*command, *helm.options(f"campaigns.lock={lock}"))
    cluster.kubectl("apply", "-f", "-", given=objects)
    yield lock
    # Most of it goes with the namespace.
    cluster.kubectl("delete", "--wait", "--ignore-not-found", "-f", "-", given=objects)


def may(cluster: Cluster, who: str, verb: str, resource: str, namespace: str = "") -> bool:
    """Whether somebody has a right: `resource` may be KIND.GROUP, KIND/SUBRESOURCE, KIND:NAME."""
    resource, _, name = resource.partition(":")
    resource, _, subresource = resource.partition("/")
    resource, _, group = resource.partition(".")
    attributes = {
        "verb": verb,
        "resource": resource,
        "group": group,
        "subresource": subresource,
        "name": name,
        "namespace": namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "resourceAttributes": attributes},
    }
    printed = cluster.kubectl("create", "-f", "-", "-o", "json", given=json.dumps(review))
    allowed: bool = json.loads(printed)["status"]["allowed"]
    return allowed


def test_campaigns_have_their_rights_in_their_namespace_alone(
    cluster: Cluster, campaigns: str
) -> None:
    for verb, resource in (("create", "jobs.batch"), ("watch", "pods"), ("get", "pods/log")):
        assert may(cluster, CLIENT, verb, resource, CAMPAIGNS), (verb, resource)
        assert not may(cluster, CLIENT, verb, resource, "default"), (verb, resource)
    assert may(cluster, CLIENT, "watch", "nodes")
    assert may(cluster, CLIENT, "get", "namespaces:kube-system")
    assert not may(cluster, CLIENT, "get", "namespaces:default")
    for verb, resource in (("get", "secrets"), ("create", "pods"), ("create", "pods/exec")):
        assert not may(cluster, CLIENT, verb, resource, CAMPAIGNS), (verb, resource)
    assert not may(cluster, CLIENT, "patch", "nodes"), "without campaigns.taint"
    leases = "leases.coordination.k8s.io"
    assert may(cluster, NODE, "create", leases, CAMPAIGNS) == (campaigns == "lease")
    for verb, resource in (("get", "pods"), ("create", "jobs.batch"), ("get", "secrets")):
        assert not may(cluster, NODE, verb, resource, CAMPAIGNS), (verb, resource)


def cluster_says(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """Exit code and answer of a kubectl that may fail."""
    try:
        return 0, cluster.kubectl(*arguments).strip()
    except AssertionError as error:
        return 1, str(error).strip()


def test_the_namespace_admits_the_pods_of_its_lock(cluster: Cluster, campaigns: str) -> None:
    spec: dict[str, Any] = {
        "serviceAccountName": "hostbench-node",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "hostbench",
                "image": "none",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }

    def admitted(spec: dict[str, Any]) -> tuple[int, str]:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
        path = cluster.root / "pod.json"
        path.write_text(json.dumps(pod))
        return cluster_says(cluster, "create", "--dry-run=server", "-n", CAMPAIGNS, "-f", str(path))

    assert admitted(spec)[0] == 0
    volume = {"name": "lock", "hostPath": {"path": "/run/lock"}}
    code, message = admitted({**spec, "volumes": [volume]})
    if campaigns == "host":
        assert code == 0, message
    else:
        assert code == 1 and "violates PodSecurity" in message and "hostPath" in message


# ---- a node qualifies ----


def qualification_job(helm: Helm, tmp_path: Path, name: str, node: str) -> dict[str, Any]:
    """The Job that NVSentinel makes of the template: Go's text/template, as Helm's are."""
    config = yaml.safe_load(QUALIFICATION.read_text())["lifecycle-manager"]["config"]
    test = config["tests"]["hostbench-quick"]
    provider = config["providers"][test["provider"]]
    chart = tmp_path / "template"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: template\nversion: 0.1.0\n")
    template = config["templates"][provider["templateFile"]]
    (chart / "templates/job.yaml").write_text("{{with .Values.given}}" + template + "{{end}}")
    given = {
        "ValidationRequestName": name,
        "TestGroupName": "group-1",
        "Namespace": "default",
        "TimeoutSeconds": provider["timeoutSeconds"],
        "Nodes": [{"NodeName": node}],
        "Tolerations": [
            {
                "Key": "node.kubernetes.io/unschedulable",
                "Value": "",
                "Operator": "Exists",
                "Effect": "NoSchedule",
            }
        ],
        "Image": test["image"],
        "Command": test["command"],
        "Env": [{"Name": "HOSTBENCH_RESULTS", "Value": "/tmp/results"}],
    }
    values = chart / "given.yaml"
    values.write_text(yaml.safe_dump({"given": given}))
    job: dict[str, Any] = yaml.safe_load(helm("template", "x", chart, "--values", values))
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == test["command"]
    return job


@pytest.mark.parametrize(
    ("exit_code", "condition", "pods"),
    # Measured; measured and bad; not idle, then again and again.
    [(0, "Complete", 1), (5, "Failed", 1), (20, "Failed", 1), (6, None, 2)],
)
def test_a_node_qualifies_by_the_exit_code(
    cluster: Cluster, helm: Helm, tmp_path: Path, exit_code: int, condition: str | None, pods: int
) -> None:
    node, name = f"new-{exit_code}", f"qualify-{exit_code}"
    cluster.add_nodes([node])
    job = qualification_job(helm, tmp_path, name, node)
    job["spec"]["template"]["metadata"] = {
        "annotations": {EXIT_CODE: str(exit_code), DURATION: "0s"}
    }
    cluster.kubectl("create", "-f", "-", given=yaml.safe_dump(job))
    job_name = job["metadata"]["name"]
    if condition is not None:
        cluster.kubectl("wait", f"job/{job_name}", f"--for=condition={condition}", "--timeout=60s")
    else:
        labels = {"batch.kubernetes.io/job-name": job_name}
        cluster.wait_for(Pod, lambda found: len(found) >= pods, labels)
    status = json.loads(cluster.kubectl("get", "job", job_name, "-o", "json"))["status"]
    if condition is None:
        assert not [one for one in status.get("conditions", ()) if one["status"] == "True"]
    else:
        assert status.get("succeeded", 0) + status.get("failed", 0) == pods
    if condition == "Failed":
        (why,) = [one for one in status["conditions"] if one["type"] == "Failed"]
        assert why["reason"] == "PodFailurePolicy" and f"exit code {exit_code}" in why["message"]
    cluster.kubectl("delete", "job", job_name, "--wait")
    cluster.delete_node(node)
