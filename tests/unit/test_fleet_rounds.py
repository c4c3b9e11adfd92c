"""Campaigns of pairs by the command line, with an engine that has measured each pair at once."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from hostbench.fleet import engines
from hostbench.fleet.campaign import Campaign, NodeState, NodeStatus, Pair
from hostbench.fleet.engines import EngineOptions
from hostbench.fleet.node import digest_of
from hostbench.model.pairs import PairMatrix, PairWord
from hostbench.model.result import CampaignMember, ResultDocument
from hostbench.results.sealed import sealed
from tests.fleet.campaigns import campaign, campaign_of_pairs
from tests.unit.pair_documents import Network, document

RACKS = [f"--rack=rack{number}=node{number}*" for number in range(4)]


class MeasuredNetwork:
    """An engine on a simulated network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.kept: dict[str, Campaign] = {}
        self.labels: dict[str | None, dict[str, str]] = {}
        self._numbers = itertools.count()
        self._documents: dict[tuple[str, str], ResultDocument] = {}

    def cluster(self) -> str:
        return "uid"

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        return tuple(expression.split(",") if expression else self.network.nodes)

    def racks(self, nodes: Collection[str], label: str | None) -> dict[str, str]:
        return {node: rack for node, rack in self.labels.get(label, {}).items() if node in nodes}

    def start(self, campaign: Campaign) -> None:
        self.kept[campaign.name] = campaign
        for pair in campaign.pairs:
            self._documents.setdefault((campaign.name, pair.name), self._measured(campaign, pair))

    def _measured(self, campaign: Campaign, pair: Pair) -> ResultDocument:
        value = self.network.value(pair.near, pair.far)
        found = document(pair.near, pair.far, value, next(self._numbers), start_s=pair.round * 30.0)
        member = CampaignMember(
            campaign=campaign.name, engine="slurm", cluster="uid", node=pair.near, lock="host",
            far_node=pair.far, round=pair.round,
            rack=campaign.racks.get(pair.near), far_rack=campaign.racks.get(pair.far),
        )  # fmt: skip
        return sealed(found.model_copy(update={"digest": None, "member": member}))

    def campaigns(self) -> tuple[str, ...]:
        return tuple(self.kept)

    def campaign(self, name: str) -> Campaign:
        return self.kept[name]

    def begun_with(self, name: str) -> dict[str, object]:
        return {}

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        return tuple(
            NodeStatus(unit, NodeState.MEASURED, None, digest_of(self._documents[name, unit]))
            for unit in self.kept[name].units
        )

    def watch(self, name: str) -> Iterator[NodeStatus]:
        yield from self.status(name)

    def documents(self, name: str, units: Sequence[str]) -> Iterator[ResultDocument]:
        for unit in units:
            yield self._documents[name, unit]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MeasuredNetwork:
    network = Network(random.Random(3), racks_count=4, rack_size=6, noise=(-0.03, 0.0, 0.03))
    network.hosts = {"node104": 0.78}
    one = MeasuredNetwork(network)

    def measured(_options: EngineOptions) -> MeasuredNetwork:
        return one

    monkeypatch.setattr(engines, "ENGINES", {"slurm": measured})
    return one


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(["fleet", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def run(*more: str) -> list[str]:
    return ["run", "--engine=slurm", *more]


def test_from_matchings_to_the_slow_host_by_a_retest(
    engine: MeasuredNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster names the racks, and the documents keep them."""
    engine.labels[None] = engine.network.racks
    where = f"--results={tmp_path}"
    code, out, err = printed(
        capsys,
        *run("net-two-hosts", "--name=net", "--pairs=matchings", "--rounds=8", where),
        "--json",
    )
    assert code == 0, err
    assert "campaign net: 96 pairs of 24 nodes in 4 racks\n" in err
    made = engine.kept["net"]
    assert [one["node"] for one in json.loads(out)["pairs"]] == [*made.units]
    # Each round has every node once, and the first one stays within the racks.
    for number, own in itertools.groupby(made.pairs, key=lambda pair: pair.round):
        pairs = list(own)
        assert Counter(node for pair in pairs for node in pair.nodes) == Counter(made.nodes)
        assert number > 1 or are_inside(engine, pairs)
    assert len(list(tmp_path.glob("net/*/*/result.json"))) == 96

    again = run("--name=again", "--pairs=retest", "--of=net", where)
    code, _, err = printed(capsys, *again)
    assert code == 0, err
    retest = engine.kept["again"]
    assert retest.suite == made.suite and retest.nodes == made.nodes
    assert retest.racks == made.racks == engine.network.racks
    pairings = Counter(node for pair in retest.pairs for node in pair.nodes)
    assert pairings["node104"] == 12
    collected = [str(tmp_path / name) for name in ("net", "again")]
    code, out, _ = printed(capsys, "pairs", *collected, "--json")
    matrix = PairMatrix.model_validate_json(out)
    assert code == ExitCode.WORSE
    assert {one.host: one.rack for one in matrix.hosts} == engine.network.racks
    assert [one.host for one in matrix.hosts if one.word is PairWord.SLOW] == ["node104"]
    # Of both together, only links may be left; in the end there is nothing to measure again.
    both = [*run("--pairs=retest", "--of=net", "--of=again", where), "--name"]
    of: list[str] = []
    for number in range(9):
        code, _, err = printed(capsys, *both, f"more{number}", *of)
        assert code == 0, err
        if "nothing to measure again" in err:
            break
        of.append(f"--of=more{number}")
    else:
        pytest.fail("a retest leaves something to measure for ever")


def are_inside(engine: MeasuredNetwork, pairs: Sequence[Pair]) -> bool:
    racks = engine.network.racks
    return all(racks[pair.near] == racks[pair.far] for pair in pairs)


@pytest.mark.parametrize("options", [["--rack-label=row"], RACKS])
def test_racks_that_the_user_names_go_before_those_of_the_cluster(
    engine: MeasuredNetwork, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    engine.labels = {None: dict.fromkeys(engine.network.nodes, "r"), "row": engine.network.racks}
    given = run("--name=net", "--pairs=matchings", "--rounds=1", *options, "--no-documents")
    for begin in (["net-two-hosts"], []):
        code, _, err = printed(capsys, *given, *begin)
        assert code == 0 and "campaign net: 12 pairs of 24 nodes in 4 racks\n" in err, err
    assert engine.kept["net"].racks == engine.network.racks
    assert are_inside(engine, engine.kept["net"].pairs)


def test_a_tournament_has_every_pair(
    engine: MeasuredNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = printed(
        capsys,
        *run(
            "net-two-hosts",
            "--name=all",
            "--pairs=tournament",
            "--nodes=node000,node101,node202,node303",
        ),
        "--no-documents",
    )
    assert code == 0, err
    links = [frozenset(pair.nodes) for pair in engine.kept["all"].pairs]
    assert len(links) == len(set(links)) == 6
    # The same options continue it; others are refused.
    for code, more in {
        0: ["--pairs=tournament"],
        2: ["--pairs=matchings", "--rounds=1"],
    }.items():
        assert printed(capsys, *run("--name=all", "--no-documents", *more))[0] == code
    code, _, err = printed(capsys, *run("--name=all", "--pairs=tournament", "--rack=r=node000"))
    assert code == 2 and "or has other racks" in err
    engine.kept["nodes"] = campaign(name="nodes")
    for options in (["--pairs=tournament"], ["--pairs=retest", "--of=all"]):
        code, _, err = printed(capsys, *run("--name=nodes", "--no-documents", *options))
        assert code == 2 and "campaign nodes measures other pairs" in err, err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quick", "--pairs=matchings"], "suite quick has no case between two hosts"),
        (
            ["net-two-hosts", "--pairs=tournament", "--rounds=3"],
            "--rounds is for --pairs matchings",
        ),
        (["net-two-hosts", "--pairs=matchings", "--rounds=24"], "--rounds '24' is not allowed"),
        (["net-two-hosts", "--pairs=matchings", "--nodes=node000"], "--pairs needs two nodes"),
        (["net-two-hosts", "--rounds=3"], "--rounds selects the pairs to measure; give --pairs"),
        (["net-two-hosts", "--rack-label=row"], "--rack-label selects the pairs to measure"),
        (
            ["net-two-hosts", "--pairs=matchings", "--rack-label=row", RACKS[0]],
            "--rack and --rack-label both define the racks",
        ),
        (["--pairs=retest"], "--of names the campaigns that --pairs retest"),
        (["net-two-hosts", "--pairs=matchings", "--of=x"], "--of names the campaigns"),
        (["net-two-hosts", "--pairs=retest", "--of=x"], "leave out suite and --nodes"),
        (
            ["net-two-hosts", "--pairs=tournament", f"--nodes={','.join(map(str, range(200)))}"],
            "--pairs tournament is 19,900 pairs, and a campaign has at most 10,000",
        ),
    ],
)
def test_bad_input_is_one_line(
    engine: MeasuredNetwork,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    code, _, err = printed(capsys, *run(*arguments))
    assert code == 2 and words in err.replace("\n", " "), err
    assert engine.kept == {}


def test_names_of_pairs_are_read_back() -> None:
    made = campaign_of_pairs([[("b", "a-1.x")]], pairs=(Pair(12, "b", "a-1.x"),))
    assert made.units == ("12-b+a-1.x",) and made.pair("12-b+a-1.x") == made.pairs[0]
    for other in ("a-1.x", "12-a-1.x+b", "1-b+a-1.x", "x-b+a-1.x"):
        assert made.pair(other) is None
