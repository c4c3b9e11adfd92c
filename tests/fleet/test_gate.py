"""What a campaign says of a node stands at the node, on a real API server with simulated nodes."""

import json
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Node

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli.app import invoke
from hostbench.fleet.campaign import Campaign
from hostbench.fleet.kubernetes.engine import KubernetesEngine
from hostbench.fleet.kubernetes.gate import (
    BOOT,
    CONDITION,
    QUALIFIED_LABEL,
    SYSTEM_ANNOTATION,
    UNQUALIFIED,
)
from hostbench.fleet.kubernetes.objects import PodOptions
from hostbench.model.baseline import HostWord
from hostbench.model.fleet import FleetCheck, FleetHost
from tests.fleet.campaigns import small_suite
from tests.fleet.cluster import SYSTEM, Cluster
from tests.fleet.simulated import REASON, add_namespace

NAMES = ("gate-fails", "gate-good", "gate-low")


def gate(cluster: Cluster, name: str) -> tuple[str, str, str, bool]:
    """The answer and the reason at a node, its label, and whether it keeps work off."""
    node = cluster.client.get(Node, name)
    assert node.metadata is not None and node.status is not None and node.spec is not None
    (one,) = (one for one in node.status.conditions or () if one.type == CONDITION)
    taints = [taint.key for taint in node.spec.taints or ()]
    label = (node.metadata.labels or {})[QUALIFIED_LABEL]
    return one.status, one.reason or "", label, UNQUALIFIED.key in taints


def report(path: Path) -> Path:
    """The report of a campaign in which one host is low."""
    made = FleetCheck(
        word=HostWord.LOW,
        suite="small",
        jobs=2,
        first_unix_s=0.0,
        last_unix_s=0.0,
        hosts=(
            FleetHost(host="gate-low", word=HostWord.LOW, population=0, jobs=("j",)),
            FleetHost(host="gate-good", word=HostWord.AS_EXPECTED, population=0, jobs=("j",)),
        ),
        populations=(),
        cases={},
    )
    path.write_text(made.model_dump_json())
    return path


def test_nodes_say_whether_they_may_have_work(
    simulated: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.add_nodes(NAMES, labels={"test": "gate"})
    namespace = add_namespace(simulated, "gate")
    # As a kubelet registers new nodes with --register-with-taints.
    simulated.taint("gate-good", UNQUALIFIED.key)
    engine = KubernetesEngine(
        namespace, PodOptions(image="hostbench:test", tolerate=(UNQUALIFIED.key,))
    )
    campaign = Campaign("october", engine.cluster(), small_suite(), NAMES, time_limit_s=300.0)
    engine.start(campaign)
    for _ in engine.watch(campaign.name):
        pass
    simulated.taint("gate-low", "somebody.else/owns")
    options = [f"--namespace={namespace}", f"--report={report(tmp_path / 'fleet.json')}"]
    assert invoke(["fleet", "qualify", "october", *options, "--set-taint"]) == ExitCode.WORSE
    out = capsys.readouterr().out
    assert (
        f"gate-fails: Unknown: NotMeasured: the campaign has not measured it: failed: {REASON}"
        in out
    )
    assert "gate-good: True: Measured: campaign october, job 20261126T120000Z-small-0001" in out
    assert gate(simulated, "gate-good") == ("True", "Measured", "true", False)
    assert gate(simulated, "gate-low") == ("False", "Low", "false", True)
    low = simulated.client.get(Node, "gate-low").spec
    assert low is not None
    assert {one.key for one in low.taints or ()} == {UNQUALIFIED.key, "somebody.else/owns"}
    simulated.untaint("gate-low", "somebody.else/owns")
    assert gate(simulated, "gate-fails") == ("Unknown", "NotMeasured", "unknown", True)
    # Nodes that have to be measured again are a selector away.
    assert set(
        KubernetesEngine(namespace, PodOptions(image="i", tolerate=(UNQUALIFIED.key,))).nodes(
            f"test=gate,{QUALIFIED_LABEL}!=true"
        )
    ) == {"gate-low", "gate-fails"}

    # Nothing is due as long as the nodes are what they were.
    assert invoke(["fleet", "qualify"]) == ExitCode.OK
    assert capsys.readouterr().out == ""
    # A boot, as for another firmware, counts where the user says so.
    booted = {"status": {"nodeInfo": {"bootID": "another-boot"}}}
    simulated.client.patch(Node.Status, "gate-good", booted)
    assert invoke(["fleet", "qualify"]) == ExitCode.OK
    assert gate(simulated, "gate-good") == ("True", "Measured", "true", False)
    assert invoke(["fleet", "qualify", "--reboots"]) == ExitCode.UNDECIDED
    assert gate(simulated, "gate-good") == ("Unknown", "Rebooted", "unknown", False)
    # The campaign measured the boot before it, whenever it is called.
    for _ in range(2):
        assert invoke(["fleet", "qualify", "october", *options]) == ExitCode.WORSE
        assert gate(simulated, "gate-good") == ("True", "Measured", "true", False)
        assert invoke(["fleet", "qualify", "--reboots"]) == ExitCode.UNDECIDED
        assert gate(simulated, "gate-good") == ("Unknown", "Rebooted", "unknown", False)
    # The boot of a node that an earlier version qualified is not recorded.
    assert invoke(["fleet", "qualify", "october", *options]) == ExitCode.WORSE
    node = simulated.client.get(Node, "gate-good")
    assert node.metadata is not None and node.metadata.annotations is not None
    system = json.loads(node.metadata.annotations[SYSTEM_ANNOTATION])
    del system[BOOT]
    old = {"metadata": {"annotations": {SYSTEM_ANNOTATION: json.dumps(system)}}}
    simulated.client.patch(Node, "gate-good", old)
    assert invoke(["fleet", "qualify", "--reboots"]) == ExitCode.UNDECIDED
    assert gate(simulated, "gate-good") == ("Unknown", "BootUnknown", "unknown", False)
    assert invoke(["fleet", "qualify", "october", *options]) == ExitCode.WORSE
    capsys.readouterr()
    # A roll-out of another kernel.
    info = {"status": {"nodeInfo": {"kernelVersion": "7.0.0-new"}}}
    simulated.client.patch(Node.Status, "gate-good", info)
    assert invoke(["fleet", "qualify", "--json"]) == ExitCode.UNDECIDED
    (found,) = json.loads(capsys.readouterr().out)["nodes"].values()
    assert found["reason"] == "SystemChanged"
    assert found["message"] == f"its kernel was {SYSTEM.kernelVersion} and is 7.0.0-new"
    assert gate(simulated, "gate-good") == ("Unknown", "SystemChanged", "unknown", False)
    # Nor does the campaign, which measured the old one, qualify the new one.
    assert invoke(["fleet", "qualify", "october", *options]) == ExitCode.WORSE
    assert (
        f"gate-good: Unknown: SystemChanged: its kernel was {SYSTEM.kernelVersion} when it was "
        "measured and is 7.0.0-new"
    ) in capsys.readouterr().out


def test_bad_options_are_refused(simulated: Cluster, tmp_path: Path) -> None:
    add_namespace(simulated, "gate")
    other = tmp_path / "other.json"
    other.write_text("{}")
    for options, message in (
        (["--report=x"], "give its NAME"),
        (["october", "--max-age=3"], "leave out NAME"),
        (["october", "--reboots"], "leave out NAME"),
        (["--max-age=0"], "is not allowed: give more than 0"),
        (["none"], "there is no campaign 'none'"),
        (["none", f"--report={other}"], "is not a report of this hostbench version"),
    ):
        with pytest.raises(UsageError, match=message):
            invoke(["fleet", "qualify", "--namespace=gate", *options])
