"""The Helm chart: what it makes of its values, and that it installs on a real cluster."""

import base64
import json
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostbench import __version__
from hostbench.base.exitcode import ExitCode
from hostbench.fleet.kubernetes.rights import ROLE
from hostbench.model.registry import subsystems
from orchestrator.settings import Settings
from tests.fleet.helm import (
    CHART,
    PROGRAMS,
    ROOT,
    Helm,
    find,
    kubeconform,
    need,
    pod_specs,
    write_schemas,
)

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
KUSTOMIZE = ROOT / "charts/kustomize"
# What a Secret of Kubernetes keeps at most, and so a release of Helm.
RELEASE_BYTES_MOST = 1 << 20
CHOICES = {
    "defaults": (),
    "small": (
        "influxdb.enabled=false",
        "grafana.enabled=false",
        "networkPolicies.enabled=false",
        "campaigns.enabled=false",
        "storage.keep=false",
    ),
    "external": (
        "influxdb.enabled=false",
        "influxdb.external.url=https://influxdb.example:8086",
        "keys.existingSecret=keys",
        "tls.existingSecret=certificate",
    ),
    "everything": (
        'image.pullSecrets=["registry"]',
        'tls.names=["bench.example","192.0.2.7"]',
        "storage.className=fast",
        'results={"keepDays":90,"keepBytes":100000000000,"keepRejectedDays":0.5}',
        'service={"type":"LoadBalancer","annotations":{"example.com/internal":"true"}}',
        'nodeSelector={"kubernetes.io/os":"linux"}',
        "baselines.configMap=hostbench-baselines",
        'tolerations=[{"key":"infra","operator":"Exists"}]',
        'affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{'
        '"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In",'
        '"values":["infra-1"]}]}]}}}',
        'podAnnotations={"example.com/team":"bench"}',
        "priorityClassName=important",
        'serviceAccount={"create":true,"annotations":{"example.com/owner":"bench"}}',
        'ingress={"enabled":true,"className":"web","host":"bench.example","tlsSecret":"web",'
        '"annotations":{"nginx.ingress.kubernetes.io/backend-protocol":"HTTPS"}}',
        'campaigns.pullSecrets=["registry"]',
        'networkPolicies.clients=[{"ipBlock":{"cidr":"192.0.2.0/24"}}]',
        "campaigns.lock=host",
        "campaigns.taint=true",
        'campaigns.subjects=[{"kind":"Group","name":"operators",'
        '"apiGroup":"rbac.authorization.k8s.io"}]',
    ),
}


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    need()
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def schemas(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("schemas")
    write_schemas(directory)
    return directory


# ---- what it makes ----


@pytest.mark.parametrize("choice", CHOICES)
def test_lint_finds_nothing(helm: Helm, choice: str) -> None:
    message = helm("lint", "--strict", CHART, *helm.options(*CHOICES[choice]))
    assert "1 chart(s) linted, 0 chart(s) failed" in message and "[WARNING]" not in message


@pytest.mark.parametrize("choice", CHOICES)
def test_kubernetes_knows_all_that_it_makes(helm: Helm, schemas: Path, choice: str) -> None:
    assert kubeconform(helm.rendered(*CHOICES[choice]), schemas) == ""


def test_kubeconform_would_say_what_is_wrong(helm: Helm, schemas: Path) -> None:
    objects = helm.rendered()
    find(objects, "Service", "hostbench")["spec"]["port"] = 8000
    find(objects, "StatefulSet", "hostbench")["spec"]["replicas"] = "one"
    message = kubeconform(objects, schemas)
    assert "additional properties 'port' not allowed" in message
    assert re.search(r"/spec/replicas.*want .*integer", message)


@pytest.mark.parametrize("choice", CHOICES)
def test_pods_have_no_rights(helm: Helm, choice: str) -> None:
    specs = list(pod_specs(helm.rendered(*CHOICES[choice])))
    assert len(specs) == 2, "the stack, and helm test"
    for spec in specs:
        assert spec["automountServiceAccountToken"] is spec["enableServiceLinks"] is False
        security = spec["securityContext"]
        assert security["runAsNonRoot"] and security["runAsUser"] == 10001
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"] and container["resources"]["limits"]
    for container in specs[0]["containers"]:
        assert container["startupProbe"] and container["livenessProbe"], container["name"]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_orchestrator_knows_its_settings(helm: Helm, choice: str) -> None:
    stack = find(helm.rendered(*CHOICES[choice]), "StatefulSet", "hostbench")
    environment = stack["spec"]["template"]["spec"]["containers"][0]["env"]
    fields = {*Settings.model_fields} | {f"{name}_file" for name in Settings.model_fields}
    for one in environment:
        assert one["name"].removeprefix("HOSTBENCH_").lower() in fields, one
        assert isinstance(one["value"], str) and "e+" not in one["value"]


def test_the_boards_are_those_of_the_stack(helm: Helm) -> None:
    boards = {path.name: path.read_text() for path in (ROOT / "grafana/dashboards").glob("*.json")}
    made = {}
    for one in helm.rendered():
        if one["metadata"].get("labels", {}).get("grafana_dashboard") == "1":
            made.update(one["data"])
    assert made == boards


def test_the_source_of_the_boards_is_the_one_they_name(helm: Helm) -> None:
    objects = helm.rendered()
    made = yaml.safe_load(
        find(objects, "Secret", "hostbench-datasource")["stringData"]["hostbench.yaml"]
    )
    provisioned = yaml.safe_load(
        (ROOT / "grafana/provisioning/datasources/hostbench.yaml").read_text()
    )
    (own,), (theirs,) = made["datasources"], provisioned["datasources"]
    for name in ("uid", "type", "access"):
        assert own[name] == theirs[name]
    assert {**own["jsonData"], "dbName": None} == {**theirs["jsonData"], "dbName": None}
    # Grafana's password is the one that InfluxDB is set up with, made once.
    keys = find(objects, "Secret", "hostbench-keys")["data"]
    password = own["secureJsonData"]["password"]
    assert base64.b64decode(keys["influxdb_read_password"]).decode() == password
    assert len(password) == 64


def test_a_package_has_all_and_fits_into_a_release(helm: Helm, tmp_path: Path) -> None:
    """The links of the checkout are files there."""
    helm("package", CHART, "--destination", tmp_path)
    (package,) = tmp_path.iterdir()
    assert package.name == f"hostbench-{__version__}.tgz"
    assert package.stat().st_size < RELEASE_BYTES_MOST
    with tarfile.open(package) as archive:
        names = {member.name for member in archive if member.isfile()}
    for path in (ROOT / "grafana/dashboards").glob("*.json"):
        assert f"hostbench/files/boards/{path.name}" in names
    assert "hostbench/files/influxdb/init.sh" in names


def test_it_has_the_versions_of_the_stack() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    for name in ("redis", "influxdb"):
        (pinned,) = re.findall(r":-([^}]+)\}", COMPOSE["services"][name]["image"])
        assert VALUES[name]["image"] == f"{name}:{pinned}"


def test_redis_and_influxdb_are_set_as_in_the_stack(helm: Helm) -> None:
    objects = helm.rendered()
    given = find(objects, "ConfigMap", "hostbench-redis")["data"]["redis.conf"].splitlines()
    lines = COMPOSE["services"]["redis"]["entrypoint"][2].splitlines()
    wanted = {line for line in lines if not re.match(r"exec|END|requirepass", line)}
    assert wanted <= set(given)
    assert {line.split()[0] for line in set(given) - wanted} == {
        "port",
        "unixsocket",
        "unixsocketperm",
    }
    containers = find(objects, "StatefulSet", "hostbench")["spec"]["template"]["spec"]["containers"]
    (influxdb,) = [one for one in containers if one["name"] == "influxdb"]
    environment = {one["name"]: one["value"] for one in influxdb["env"]}
    assert environment == COMPOSE["services"]["influxdb"]["environment"]
    script = find(objects, "ConfigMap", "hostbench-influxdb")["data"]["init.sh"]
    assert script == (ROOT / "compose/influxdb/init.sh").read_text()


def test_secrets_have_the_names_of_make_env(helm: Helm) -> None:
    text = (ROOT / "scripts/make-env.sh").read_text()
    (words,) = re.findall(r"^random=\(([^)]+)\)", text, re.MULTILINE)
    made = find(helm.rendered(), "Secret", "hostbench-keys")["data"]
    assert set(made) == {*words.split(), "keys", "host_keys"} - {"grafana_admin_password"}
    used = re.findall(r"/run/secrets/(\w+)", (ROOT / "compose/influxdb/init.sh").read_text())
    assert used and set(used) <= set(made)


def test_all_pods_go_where_the_values_say(helm: Helm) -> None:
    objects = helm.rendered(*CHOICES["everything"])
    for spec in pod_specs(objects):
        assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
        assert spec["tolerations"] == [{"key": "infra", "operator": "Exists"}]
        assert list(spec["affinity"]) == ["nodeAffinity"]
        assert spec["priorityClassName"] == "important"
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert spec["serviceAccountName"] == "hostbench"
    assert find(objects, "ServiceAccount", "hostbench")["automountServiceAccountToken"] is False
    stack = find(objects, "StatefulSet", "hostbench")["spec"]["template"]["metadata"]
    own = {name for name in stack["annotations"] if name.startswith("hostbench.dev/")}
    assert set(stack["annotations"]) - own == {"example.com/team"} and len(own) == 2
    for name in ("hostbench-node", "hostbench-campaigns"):
        account = find(objects, "ServiceAccount", name)
        assert account["imagePullSecrets"] == [{"name": "registry"}]


def test_pods_may_have_an_account_that_is_there(helm: Helm) -> None:
    objects = helm.rendered("serviceAccount.name=others", "campaigns.enabled=false")
    assert {spec["serviceAccountName"] for spec in pod_specs(objects)} == {"others"}
    assert not [one for one in objects if one["kind"] == "ServiceAccount"]


def test_an_ingress_leads_to_the_api_and_only_by_tls(helm: Helm) -> None:
    objects = helm.rendered(*CHOICES["everything"])
    spec = find(objects, "Ingress", "hostbench")["spec"]
    (rule,) = spec["rules"]
    assert spec["tls"] == [{"hosts": [rule["host"]], "secretName": "web"}]
    (path,) = rule["http"]["paths"]
    backend = path["backend"]["service"]
    ports = find(objects, "Service", backend["name"])["spec"]["ports"]
    assert [one["port"] for one in ports if one["name"] == backend["port"]["name"]] == [8000]


def test_baselines_are_where_the_stack_has_them(helm: Helm) -> None:
    (path,) = [
        one.split(":")[1]
        for one in COMPOSE["services"]["orchestrator"]["volumes"]
        if one.startswith("./baselines:")
    ]

    def volume(*settings: str) -> tuple[list[Any], list[Any]]:
        stack = find(helm.rendered(*settings), "StatefulSet", "hostbench")
        spec = stack["spec"]["template"]["spec"]
        mounts = [one for container in spec["containers"] for one in container["volumeMounts"]]
        return (
            [one for one in mounts if one["name"] == "baselines"],
            [one for one in spec["volumes"] if one["name"] == "baselines"],
        )

    assert volume() == ([], [])
    mount = {"name": "baselines", "mountPath": path, "readOnly": True}
    claim = {"claimName": "files", "readOnly": True}
    for setting, kind, source in (
        ("baselines.configMap=models", "configMap", {"name": "models"}),
        ("baselines.existingClaim=files", "persistentVolumeClaim", claim),
    ):
        assert volume(setting) == ([mount], [{"name": "baselines", kind: source}])


def test_the_way_to_hosts_is_open_at_the_ports_of_all_services(helm: Helm) -> None:
    policy = find(helm.rendered(), "NetworkPolicy", "hostbench")
    (ports,) = [
        port for rule in policy["spec"]["egress"] for port in rule["ports"] if "endPort" in port
    ]
    known = [one.port for one in subsystems().values()]
    assert (ports["port"], ports["endPort"]) == (min(known), max(known))


def test_the_namespace_of_campaigns_admits_what_its_lock_takes(helm: Helm) -> None:
    for lock, profile in (("lease", "restricted"), ("host", "privileged")):
        namespace = find(
            helm.rendered(f"campaigns.lock={lock}"), "Namespace", "hostbench-campaigns"
        )
        labels = namespace["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == profile


@pytest.mark.parametrize("qualify", [False, True])
@pytest.mark.parametrize("taint", [False, True])
@pytest.mark.parametrize("lock", ["lease", "host"])
def test_campaigns_have_the_rights_that_they_need_and_no_more(
    helm: Helm, lock: str, taint: bool, qualify: bool
) -> None:
    pairs = taint != qualify
    objects = helm.rendered(
        f"campaigns.lock={lock}",
        f"campaigns.taint={json.dumps(taint)}",
        f"campaigns.pairs={json.dumps(pairs)}",
        f"campaigns.qualify={json.dumps(qualify)}",
    )
    chosen = {"--exclusive taint or requests"}
    chosen |= {"--lock lease"} if lock == "lease" else set()
    chosen |= {"--exclusive taint"} if taint else set()
    chosen |= {"--pairs"} if pairs else set()
    chosen |= {"fleet qualify"} if qualify else set()

    def wanted(scope: str, to: str) -> list[Any]:
        return [
            one.policy
            for one in ROLE
            if (one.scope, one.to) == (scope, to)
            and (one.when is None or chosen.intersection(one.when.split(", ")))
        ]

    def given(kind: str, name: str) -> list[Any]:
        found = [o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
        return [rule for one in found for rule in one["rules"]]

    def in_order(rules: list[Any]) -> list[str]:
        return sorted(
            json.dumps({name: sorted(words) for name, words in rule.items()}, sort_keys=True)
            for rule in rules
        )

    for kind, name, scope, to in (
        ("Role", "hostbench-campaigns", "namespace", "client"),
        ("ClusterRole", "hostbench-campaigns", "cluster", "client"),
        ("Role", "hostbench-node", "namespace", "pod"),
    ):
        assert in_order(given(kind, name)) == in_order(wanted(scope, to)), (kind, name)


def test_kustomize_has_what_the_chart_makes(helm: Helm) -> None:
    """`make chart` writes it."""
    command = ("template", "hostbench", CHART, "--show-only", "templates/campaigns.yaml")
    made = helm(*command, *helm.options())
    assert (KUSTOMIZE / "campaigns.yaml").read_text() == made
    shown = subprocess.run(
        [PROGRAMS / "kubectl", "kustomize", KUSTOMIZE], capture_output=True, text=True, check=True
    )
    kinds = [one["kind"] for one in yaml.safe_load_all(shown.stdout)]
    assert sorted(kinds) == sorted(one["kind"] for one in yaml.safe_load_all(made) if one)


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("image.registry=", "image.registry is missing: say where you pushed"),
        ("image.registry=https://registry.example", "image.registry is https://.* give a host and"),
        ("image.pullPolicy=Sometimes", "'/image/pullPolicy'.*'Always', 'IfNotPresent', 'Never'"),
        ("redis.image=redis", "'/redis/image'.*does not match"),
        ("storage.results=10 GB", "storage.results is 10 GB: give bytes, such as 10Gi"),
        ("storage.keep=yes", "'/storage/keep': got string, want boolean"),
        (
            "results.keepDays=0",
            "'/results/keepDays'",
        ),
        ("results.keepBytes=1.5", "'/results/keepBytes': got number, want null or integer"),
        ("service.type=Public", "'/service/type'.*'ClusterIP'"),
        ("ingress.enabled=true", "ingress.host is missing: give the name by which browsers"),
        ("ingress.host=https://bench.example", "'/ingress/host'.*does not match"),
        ('affinity={"nodeAfinity":{}}', "additional properties 'nodeAfinity' not allowed"),
        (
            'podAnnotations={"hostbench.dev/settings":"x"}',
            "podAnnotations has hostbench.dev/settings: the chart sets",
        ),
        ("serviceAccount.create=1", "'/serviceAccount/create': got number, want boolean"),
        ("campaigns.lock=file", "'/campaigns/lock'.*'lease', 'host'"),
        ("campaigns.namespace=Bench_1", "'/campaigns/namespace'.*does not match"),
        ('campaigns.subjects=[{"kind":"Robot","name":"x"}]', "'/campaigns/subjects/0/kind'"),
        ("campaign.lock=host", "additional properties 'campaign' not allowed"),
        ("influxdb.external.url=https://me:secret@influxdb", "'/influxdb/external/url'"),
        ("influxdb.external.url=http://influxdb:8086", "set influxdb.enabled=false to use"),
        ("baselines.configMap=Models", "'/baselines/configMap'.*does not match"),
        (
            'baselines={"configMap":"models","existingClaim":"files"}',
            "baselines.configMap is models, and baselines.existingClaim is files: name one",
        ),
    ],
)
def test_bad_values_are_refused_by_name(helm: Helm, setting: str, message: str) -> None:
    assert re.search(message, helm.refusal(setting)), helm.refusal(setting)


def test_an_external_influxdb_needs_its_password(helm: Helm) -> None:
    message = helm.refusal("influxdb.enabled=false", "influxdb.external.url=http://influxdb:8086")
    assert "influxdb.external.url needs keys.existingSecret" in message


# ---- a node qualifies ----


@pytest.mark.parametrize(
    ("measured", "checked", "exit_code"),
    [
        (ExitCode.OK, ExitCode.OK, ExitCode.OK),
        (ExitCode.OK, ExitCode.WORSE, ExitCode.WORSE),
        (ExitCode.OK, ExitCode.UNDECIDED, ExitCode.OK),
        (ExitCode.INVALID, ExitCode.OK, ExitCode.INVALID),
        (ExitCode.NOT_IDLE, ExitCode.OK, ExitCode.NOT_IDLE),
    ],
)
def test_what_is_measured_and_compared_decides(
    tmp_path: Path, measured: ExitCode, checked: ExitCode, exit_code: ExitCode
) -> None:
    scripted = tmp_path / "hostbench"
    scripted.write_text(f"#!/bin/sh\n[ $1 = run ] && exit {measured}\nexit {checked}\n")
    scripted.chmod(0o755)
    command = nvsentinel()["tests"]["hostbench-quick"]["command"]
    done = subprocess.run(command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    assert done.returncode == exit_code


def test_only_what_says_nothing_of_the_node_is_tried_again() -> None:
    template = nvsentinel()["templates"]["hostbench-job-template.yaml"]
    # The policy itself has no variables.
    (policy,) = re.findall(r"podFailurePolicy:\n(.*?)\n  template:", template, re.DOTALL)
    rules = {one["action"]: one.get("onExitCodes") for one in yaml.safe_load(policy)["rules"]}
    again = [int(ExitCode.NOT_IDLE), int(ExitCode.BUSY)]
    assert rules["Count"]["values"] == again
    assert rules["FailJob"] == {**rules["Count"], "operator": "NotIn", "values": [0, *again]}


def nvsentinel() -> dict[str, Any]:
    """What of the file NVSentinel's lifecycle-manager is set with."""
    values = yaml.safe_load((ROOT / "charts/qualification/nvsentinel.yaml").read_text())
    found: dict[str, Any] = values["lifecycle-manager"]["config"]
    return found
