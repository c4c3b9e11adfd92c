"""The command line of campaigns, with an engine that only remembers what it was given."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli import fleet_qualify
from hostbench.cli.app import invoke
from hostbench.fleet import engines
from hostbench.fleet.campaign import (
    Campaign,
    Digest,
    MeasuredSystem,
    NodeState,
    NodeStatus,
    PostTo,
)
from hostbench.fleet.engines import EngineOptions
from hostbench.fleet.kubernetes.gate import Qualification
from hostbench.model.result import CampaignMember, ResultDocument
from hostbench.model.summary import Verdict
from hostbench.results.sealed import sealed
from tests.unit.quick_documents import as_measured

CHECKOUT = Path(__file__).parents[2]


class RememberedEngine:
    """An engine whose nodes have ended as soon as a campaign is started."""

    def __init__(self) -> None:
        self.kept: dict[str, Campaign] = {}
        self.documents_of: dict[str, ResultDocument] = {}
        self.ends: dict[str, NodeStatus] = {}
        self.options = EngineOptions()
        self.options_of: dict[str, EngineOptions] = {}

    def cluster(self) -> str:
        return "uid"

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        return tuple((expression or "n1,n2").split(","))

    def start(self, campaign: Campaign) -> None:
        self.options_of.setdefault(campaign.name, self.options)
        self.kept.setdefault(campaign.name, campaign)
        for node in campaign.nodes:
            document = member_document(campaign, node)
            self.documents_of[node] = document
            self.ends.setdefault(
                node, NodeStatus(node, NodeState.MEASURED, None, digest_of(document))
            )

    def campaigns(self) -> tuple[str, ...]:
        return tuple(self.kept)

    def campaign(self, name: str) -> Campaign:
        return self.kept[name]

    def begun_with(self, name: str) -> Mapping[str, object]:
        return vars(self.options_of[name])

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        return tuple(self.ends[node] for node in self.kept[name].nodes)

    def watch(self, name: str) -> Iterator[NodeStatus]:
        yield from self.status(name)

    def documents(self, name: str, nodes: Sequence[str]) -> Iterator[ResultDocument]:
        for node in nodes:
            yield self.documents_of[node]

    def retry(self, name: str) -> tuple[str, ...]:
        return tuple(one.node for one in self.status(name) if one.state is not NodeState.MEASURED)

    def cancel(self, name: str) -> None:
        pass

    def clean(self, name: str) -> None:
        del self.kept[name]


def member_document(campaign: Campaign, node: str) -> ResultDocument:
    member = CampaignMember(
        campaign=campaign.name,
        engine="kubernetes",
        cluster=campaign.cluster,
        node=node,
        lock="lease",
    )
    return sealed(as_measured().model_copy(update={"member": member}))


def digest_of(document: ResultDocument) -> Digest:
    assert document.member is not None
    assert document.digest is not None
    return Digest(
        document.job.id, document.digest, ExitCode.OK, {Verdict.CLEAN: 1}, document.member,
        system=MeasuredSystem("6.1"),
    )  # fmt: skip


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RememberedEngine:
    one = RememberedEngine()

    def remembered(options: EngineOptions) -> RememberedEngine:
        one.options = options
        return one

    monkeypatch.setattr(engines, "ENGINES", {"kubernetes": remembered})
    return one


def run(*arguments: str) -> int:
    return invoke(["fleet", *arguments])


def test_a_campaign_leaves_a_document_for_each_node_and_says_what_it_was(
    engine: RememberedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"--results={tmp_path}"
    assert run("run", "quick", "--name=c", where, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["node"] for one in found["nodes"]] == ["n1", "n2"]
    assert run("results", "c", where) == 0
    paths = capsys.readouterr().out.split()
    # Both jobs have one id, as jobs of many nodes may; neither document is lost.
    assert len(set(paths)) == 2
    for node, path in zip(("n1", "n2"), paths, strict=True):
        assert json.loads(Path(path).read_text())["member"]["node"] == node


def test_the_page_names_every_key_of_the_json(
    engine: RememberedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (CHECKOUT / "docs" / "fleet.md").read_text()
    section = page.partition("\n## JSON\n")[2]
    rows = {row.split("|")[1]: row for row in section.splitlines() if row.startswith("| `")}
    where = f"--results={tmp_path}"

    def check(command: str, tree: Mapping[str, object]) -> None:
        (row,) = (row for commands, row in rows.items() if f"`{command}`" in commands)
        assert [key for key in tree if f"`{key}`" not in row] == []

    def printed(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert run(*arguments, "--json") == code
        tree = json.loads(capsys.readouterr().out)
        check(arguments[0], tree)
        return dict(tree)

    assert printed("run", "quick", "--name=c", "--detach") == {"campaign": "c"}
    engine.ends["n2"] = NodeStatus("n2", NodeState.FAILED, "the disk is full")
    for command in ("run", "status", "cancel"):
        # The one that follows the campaign to its end says that a node has no document.
        name = "--name=c" if command == "run" else "c"
        more = (where,) if command == "run" else ()
        measured, failed = printed(command, name, *more, code=int(command == "run"))["nodes"]
        for one in (measured, measured["result"], measured["result"]["system"]):
            assert [key for key in one if f"`{key}`" not in section] == []
        assert (failed["state"], failed["reason"], failed["result"]) == (
            "failed", "the disk is full", None,
        )  # fmt: skip
    assert list(printed("results", "c", where)["documents"]) == ["n1"]
    assert printed("retry", "c")["nodes"] == ["n2"]
    assert printed("list") == {"campaigns": ["c"]}
    assert printed("clean", "c") == {"campaign": "c", "removed": True}
    fleet_qualify._show({"n1": Qualification("True", "Measured", "text")}, {}, as_json=True)
    tree = json.loads(capsys.readouterr().out)
    check("qualify", tree)
    check("qualify", tree["nodes"]["n1"])


def test_a_document_that_is_not_posted_is_named_and_here(
    engine: RememberedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, post = f"--results={tmp_path}", "--post=https://bench.example:8000"
    run("run", "quick", "--name=c", where, post, "--post-keys=poster", "--detach")
    assert engine.options.post == PostTo("https://bench.example:8000", "poster")
    result = engine.ends["n2"].result
    assert result is not None
    late = dataclasses.replace(result, unposted="no answer from https://bench.example:8000")
    engine.ends["n2"] = dataclasses.replace(engine.ends["n2"], result=late)
    assert run("run", "--name=c", where) == 1
    out, err = capsys.readouterr()
    why = "its document is not posted: no answer from https://bench.example:8000"
    assert f"n2: {why}" in err and "n1: " not in err
    assert why in " ".join(out.split())
    assert len(list(tmp_path.glob("c/*/*/result.json"))) == 2
    for options, message in (
        (("--post=https://bench.example:8000",), "--post and --post-keys belong together"),
        (("--post-keys=poster",), "--post and --post-keys belong together"),
        (("--post=http://bench.example:8000", "--post-keys=poster"), "would send the key unencr"),
        (("--post=bench.example", "--post-keys=poster"), "is not the address of an orchestrator"),
    ):
        with pytest.raises(UsageError, match=message):
            run("run", "quick", "--name=d", where, *options)


def test_a_document_that_is_not_the_campaigns_is_refused(
    engine: RememberedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"--results={tmp_path}"
    run("run", "quick", "--name=c", where, "--no-documents")
    campaign = engine.kept["c"]
    other = member_document(dataclasses.replace(campaign, cluster="another"), "n2")
    engine.documents_of["n1"] = other  # not the one that the node named
    engine.documents_of["n2"] = other  # of another cluster
    engine.ends["n2"] = NodeStatus("n2", NodeState.MEASURED, None, digest_of(other))
    assert run("results", "c", where) == 1
    err = capsys.readouterr().err
    assert "n1: the document of n1 is not the one that it named" in err
    assert "n2: the document of n2 is of another campaign or cluster than c" in err


def test_going_on_with_a_campaign_takes_its_own_options(
    engine: RememberedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="there is no campaign c to continue"):
        run("run", "--name=c")
    assert run("run", "quick", "--name=c", "--no-documents", "--at-most=1") == 0
    assert run("run", "--name=c", "--no-documents") == 0
    assert engine.kept["c"].at_most == 1
    with pytest.raises(UsageError, match="campaign c measures another suite, quick"):
        run("run", "--workload=cpu.fma", "--name=c", "--no-documents")
    with pytest.raises(UsageError, match="--trials changes a suite; name the suite of campaign c"):
        run("run", "--name=c", "--trials=3", "--no-documents")
    # The cluster may have lost a node that the same selector matched before.
    assert run("run", "quick", "--name=c", "--nodes=n1", "--no-documents") == 0
    assert engine.kept["c"].nodes == ("n1", "n2")
    assert "campaign c keeps the nodes that it began with" in capsys.readouterr().err


def test_going_on_with_other_options_names_the_one_that_differs(
    engine: RememberedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = (
        "--at-most=1", "--time-limit=60", "--exclusive=taint", "--image=i:1", "--tolerate=a",
        "--annotation=k=v", "--priority=high",
    )  # fmt: skip
    assert run("run", "quick", "--name=c", "--no-documents", *begun) == 0
    kept = dict(engine.kept)
    # The same ones, some of them, and what the environment says: no change was requested.
    monkeypatch.setenv("HOSTBENCH_IMAGE", "i:2")
    for same in (begun, begun[:2], ()):
        assert run("run", "quick", "--name=c", "--no-documents", *same) == 0
    for option, words in {
        "--at-most=2": "begun with --at-most 1, not with --at-most 2; leave the option out",
        "--time-limit=61": "begun with --time-limit 60, not with --time-limit 61",
        "--exclusive=none": "begun with --exclusive taint, not with --exclusive none",
        "--image=i:2": "begun with --image i:1, not with --image i:2",
        "--lock=host": "begun with --lock lease, not with --lock host",
        "--tolerate=b": "begun with --tolerate a, not with --tolerate b",
        "--annotation=k=w": "begun with --annotation k=v, not with --annotation k=w",
        "--priority=low": "begun with --priority high, not with --priority low",
        "--service-account=s": "begun without --service-account, not with --service-account s",
    }.items():
        with pytest.raises(UsageError) as refusal:
            run("run", "--name=c", "--no-documents", option)
        assert words in refusal.value.message
        assert "choose another --name" in refusal.value.message
    assert engine.kept == kept


def test_a_node_without_a_document_is_exit_code_1_with_its_reason(
    engine: RememberedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.ends["n2"] = NodeStatus("n2", NodeState.FAILED, "the disk is full\x1b[2J")
    assert run("run", "quick", "--name=c", "--no-documents") == 1
    out, err = capsys.readouterr()
    assert "c: quick on 2 nodes: 1 measured, 1 failed" in out
    assert "n2: failed: the disk is full" in err
    assert "\x1b" not in err, "a pod writes to the terminal"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--at-most=0",), "--at-most '0' is not allowed"),
        (("--time-limit=0",), "--time-limit '0' is not allowed"),
        (("--at-most=2", "--queue=q"), "the queue decides: leave out one"),
        (("--name=A_B",), "--name 'A_B'"),
        (("--annotation=x",), "--annotation 'x' is not key=value"),
    ],
)
def test_bad_options_are_refused_before_anything_is_called(
    engine: RememberedEngine, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        run("run", "quick", *arguments)
    assert words in refusal.value.message
    assert engine.kept == {}


def test_kubernetes_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda _name: None)
    for command in (["run", "quick"], ["list"], ["qualify"]):
        with pytest.raises(ResourceError, match="pip install lightkube, or with pipx: pipx inject"):
            run(*command)


@pytest.mark.parametrize("command", ["status", "results", "retry", "cancel", "clean", "qualify"])
def test_a_name_that_cannot_be_one_is_refused_before_an_engine_is_called(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(_options: EngineOptions) -> RememberedEngine:
        raise AssertionError

    monkeypatch.setattr(engines, "ENGINES", {"kubernetes": called, "slurm": called})
    for name in ("A_B", "../shared", "1st", "ends-", "a" * 31, ""):
        with pytest.raises(UsageError) as refusal:
            run(command, name)
        assert f"NAME {name!r} is no name of a campaign" in refusal.value.message
        assert "at most 30" in refusal.value.message
