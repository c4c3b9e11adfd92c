"""Campaigns for tests, and the command that measures a node of one."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hostbench.fleet.campaign import Campaign, Pair
from hostbench.fleet.node import CAMPAIGN, DIGEST, digest_of
from hostbench.model.events import ParamValue
from hostbench.model.result import USABLE, CampaignMember, CaseResult, ResultDocument
from hostbench.model.suite import IdleRules, Repeats, RepeatsChange, Suite, SuiteCase
from hostbench.plan.suite import find_suite, load_suite
from hostbench.results.sealed import sealed
from hostbench.results.store import ResultsStore
from tests.faults.command import Command

MOMENT: dict[str, ParamValue] = {"threads": 1, "duration_s": 0.05, "warmup_s": 0}


def small_suite(**changes: Any) -> Suite:
    """Two real cases of some tenths of a second, on whatever else the host does."""
    plain: dict[str, Any] = {
        "name": "small",
        "idle": IdleRules(policy="force"),
        "repeats": Repeats(min_trials=2, max_trials=2),
        "cases": (
            SuiteCase(workload="cpu.clock", params=dict(MOMENT)),
            SuiteCase(workload="cpu.fma", params=dict(MOMENT)),
        ),
    }
    return Suite(**(plain | changes))


def brief_quick() -> Suite:
    """The suite quick with a moment of each entry, small files and arrays, and no GPUs."""
    quick = load_suite(find_suite("quick"))
    small: dict[str, dict[str, ParamValue]] = {
        "mem": {"size_bytes": 2**22},
        "disk": {"file_bytes": 2**24},
    }
    cases = []
    for case in quick.cases:
        params = {
            **case.params,
            **small.get(case.workload.partition(".")[0], {}),
            "duration_s": 0.05,
        }
        if "n" in case.params:
            params["n"] = 500
        changes = {"params": params, "grid": {}, "repeats": RepeatsChange(), "peers": None}
        cases.append(case.model_copy(update=changes))
    return small_suite(
        name="brief",
        cases=tuple(one for one in cases if not one.workload.startswith("gpu.")),
        repeats=Repeats(min_trials=1, max_trials=1),
    )


def campaign(**changes: Any) -> Campaign:
    plain: dict[str, Any] = {
        "name": "small-1",
        "cluster": "cluster-a",
        "suite": small_suite(),
        "nodes": ("node1", "node2"),
    }
    return Campaign(**(plain | changes))


def campaign_file(directory: Path, made: Campaign) -> Path:
    path = directory / "campaign.json"
    path.write_bytes(CAMPAIGN.dump_json(made))
    return path


def net_suite(**changes: Any) -> Suite:
    """A real case of a moment between two hosts."""
    moment: dict[str, ParamValue] = {"target": "far_host", "duration_s": 0.2, "warmup_s": 0}
    plain: dict[str, Any] = {
        "name": "between",
        "cases": (SuiteCase(workload="net.tcp_stream", params=moment | {"streams": 1}),),
    }
    return small_suite(**(plain | changes))


LONG_BETWEEN = net_suite(
    cases=(SuiteCase(workload="net.tcp_stream", params={"target": "far_host", "duration_s": 60}),)
)


def campaign_of_pairs(rounds: Sequence[Sequence[tuple[str, str]]], **changes: Any) -> Campaign:
    """One of pairs, near end first."""
    pairs = tuple(Pair(number, *pair) for number, one in enumerate(rounds, start=1) for pair in one)
    nodes = tuple(sorted({node for pair in pairs for node in pair.nodes}))
    return campaign(**({"suite": net_suite(), "nodes": nodes, "pairs": pairs} | changes))


def measured_document(directory: Path) -> ResultDocument:
    """A real one, of one moment on this host."""
    command = Command(directory)
    ended = command.run(
        "run", "--workload=cpu.clock", "--trials=1", "--idle-policy=force",
        *(f"--param={name}={value}" for name, value in MOMENT.items()),
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    return ResultsStore(command.results).job("latest").load()


def hand_in(directory: Path, document: ResultDocument, member: CampaignMember) -> None:
    """Write what a node or a pair leaves that measured: its document and its message."""
    own = sealed(document.model_copy(update={"member": member}))
    job = directory / "job" / own.job.id
    job.mkdir(parents=True, exist_ok=True)
    (job / "result.json").write_text(own.model_dump_json())
    (directory / "message").write_bytes(DIGEST.dump_json(digest_of(own)))


def check_answer(
    command: Command, documents: str, case: CaseResult, nodes: Collection[str]
) -> None:
    """What `fleet pairs` says of a document names its nodes, or why its figure says nothing: other
    work of this machine disturbs some."""
    answer = command.run("fleet", "pairs", documents, "--json")
    if case.verdict in USABLE:
        # Two nodes tell nothing yet.
        assert answer.code == 21, answer
        assert {host["host"] for host in answer.document["hosts"]} == set(nodes)
    else:
        assert answer.code == 2 and "no figure between the hosts" in answer.output, answer
