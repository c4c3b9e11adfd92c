"""`hostbench fleet`: one suite on many hosts, by Kubernetes or Slurm. Each command imports what
takes time to import."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.cli.fleet_ends import Meet, MeetAddress, PairName, SecretDirectory, end_of, ends
from hostbench.cli.fleet_options import EngineOption, Name, Shared, on_engine
from hostbench.cli.fleet_pairs import (
    Of,
    Pairs,
    PairsChoice,
    Rack,
    RackLabel,
    Rounds,
    Seed,
    network,
)
from hostbench.cli.fleet_qualify import qualifying
from hostbench.cli.fleet_report import reports
from hostbench.cli.options import (
    EPILOG,
    Json,
    Namespace,
    Param,
    Peers,
    Results,
    Scale,
    SuiteName,
    Trials,
    Workload,
    print_json,
    seconds,
    whole_number,
)
from hostbench.model.campaign import EngineName, Exclusive, LockName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.commands import RunRequest
    from hostbench.cli.fleet_commands import Follower
    from hostbench.cli.fleet_rounds import PairsRequest
    from hostbench.fleet.campaign import Campaign, Engine, NodeStatus, PostTo

NODES_MOST = 100_000
TIME_LIMIT_S_MOST = 30 * 86400.0
# How long a node tries to post its document: longer than a thousand nodes take together.
POST_S_MOST = 180.0

fleet = typer.Typer(
    name="fleet",
    help="Measure one suite on many hosts, through the engine that runs them: Kubernetes or Slurm.",
    rich_markup_mode=None,
)
fleet.add_typer(reports)
fleet.add_typer(network)
fleet.add_typer(qualifying)
fleet.add_typer(ends)


@fleet.command(epilog=EPILOG)
def measure(
    campaign_file: Annotated[
        Path, typer.Option(metavar="FILE", help="The campaign file that the engine provides.")
    ],
    node: Annotated[str, typer.Option(metavar="NAME", help="The name of this node.")],
    engine: Annotated[EngineName, typer.Option(help="The engine that started this command.")],
    lock: Annotated[
        LockName,
        typer.Option(
            help="How to keep other runs away: with the host's lock file, or with a Lease object."
        ),
    ] = "host",
    results: Results = None,
    termination_message: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the digest of the document, or for the reason why there is none.",
        ),
    ] = None,
    document_to_log: Annotated[
        bool,
        typer.Option("--document-to-log", help="Write the document to standard output, encoded."),
    ] = False,
    post: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The orchestrator to post the document to."),
    ] = None,
    post_keys: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Directory with the orchestrator's api_key and, for TLS, ca.crt.",
        ),
    ] = None,
    pair: PairName = None,
    meet: Meet = None,
    meet_address: MeetAddress = None,
    secret: SecretDirectory = None,
) -> None:
    """Measure this node for a campaign. Engines call this command; exit code 0 means that it wrote
    a document."""
    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.progress import progress_for
    from hostbench.fleet.engines import node_lease
    from hostbench.fleet.node import NodeRequest, measure_node, read_campaign, reported
    from hostbench.results.ids import results_directory

    interrupt = Interrupt()
    interrupt.install()
    with progress_for(sys.stderr) as progress, reported(termination_message):
        campaign = read_campaign(campaign_file)
        lease = node_lease(lock, campaign.name, node, progress.say)
        request = NodeRequest(
            campaign=campaign,
            node=node,
            engine=engine,
            results=results_directory(results),
            lock=lock,
            lease=lease,
            message=termination_message,
            log=sys.stdout if document_to_log else None,
            post=_poster(post, post_keys, interrupt),
            end=None
            if pair is None
            else end_of(campaign, node, pair, meet, meet_address, secret, lease),
        )
        measure_node(request, interrupt, progress)


def _poster(
    url: str | None, keys: Path | None, interrupt: "Interrupt"
) -> "Callable[[bytes], object] | None":
    """Return what posts a document, or None if none is to be posted. A wrong address or a missing
    key is an error of the call, which keeps the measurement."""
    if url is None or keys is None:
        return None

    def post(document: bytes) -> object:
        from hostbench.client.api import Orchestrator
        from hostbench.client.connection import connection_for_posts

        with Orchestrator(connection_for_posts(url, keys)) as server:
            return server.post(document, POST_S_MOST, interrupt.wait)

    return post


@fleet.command(epilog=EPILOG)
def run(
    context: typer.Context,
    suite: SuiteName = None,
    scale: Scale = None,
    workload: Workload = None,
    param: Param = None,
    trials: Trials = None,
    peers: Peers = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the campaign; the name of an existing one continues it. "
            "Default: a new name."
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Node names separated by commas, or a label selector such as rack=r1 (Slurm: "
            "n[1-9]). Default: all nodes that accept work."
        ),
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Maximum number of nodes or pairs to measure at once. Default: all."
        ),
    ] = None,
    pairs: Pairs = None,
    rounds: Rounds = None,
    seed: Seed = "0",
    rack: Rack = None,
    rack_label: RackLabel = None,
    of: Of = None,
    exclusive: Annotated[
        Exclusive,
        typer.Option(
            help="How to keep other work away. requests: request all resources of a node; "
            "taint: also set a taint; none: do not keep it away."
        ),
    ] = Exclusive.REQUESTS,
    time_limit: Annotated[
        str,
        typer.Option(metavar="SECONDS", help="Time limit of a node or a pair, waiting included."),
    ] = "3600",
    engine: EngineOption = "kubernetes",
    namespace: Namespace = None,
    shared: Shared = None,
    image: Annotated[
        str | None,
        typer.Option(
            envvar="HOSTBENCH_IMAGE", help="Kubernetes: the hostbench image that the nodes run."
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            "--partition",
            help="The Kueue LocalQueue that decides when nodes start, or the Slurm partition.",
        ),
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", "--qos", help="A PriorityClass, or Slurm's QOS.")
    ] = None,
    lock: Annotated[
        LockName,
        typer.Option(
            help="Kubernetes: lock out other campaigns only (lease), or all runs on the host "
            "through a hostPath (host), which the namespace must allow."
        ),
    ] = "lease",
    service_account: Annotated[
        str | None,
        typer.Option(
            help="Kubernetes: the service account of the pods; it needs access to Leases."
        ),
    ] = None,
    tolerate: Annotated[
        list[str] | None,
        typer.Option(metavar="TAINT", help="Kubernetes: measure nodes with this taint too."),
    ] = None,
    annotation: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Kubernetes: an additional annotation of the pods."),
    ] = None,
    reservation: Annotated[
        str | None, typer.Option(help="Slurm: the reservation that the nodes are in.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(help="Slurm: the account that the time is charged to.")
    ] = None,
    program: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Slurm: path of hostbench on the nodes, such as that of make install.",
        ),
    ] = "hostbench",
    post: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Nodes also post their documents to this orchestrator's API."
        ),
    ] = None,
    post_keys: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Source of api_key and ca.crt for --post. Kubernetes: a Secret of the "
            "namespace; Slurm: a directory that all nodes see.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Start the campaign, print its name and exit.")
    ] = False,
    no_documents: Annotated[
        bool,
        typer.Option(
            "--no-documents",
            help="Do not collect the documents; hostbench fleet results can do it later.",
        ),
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Measure a suite on many nodes, or between pairs of them, and collect the documents.

    The cluster keeps the campaign: end this command when you like, and continue with --name.
    """
    from hostbench.cli.fleet_commands import CampaignRequest, Follower, begin
    from hostbench.fleet.campaign import checked_name
    from hostbench.fleet.engines import EngineOptions
    from hostbench.fleet.engines import engine as found
    from hostbench.results.ids import results_directory

    what = _what(suite, scale, workload, param or [], trials, peers)
    if name is not None:
        checked_name(name, "--name")
    if queue is not None and at_most is not None and engine == "kubernetes":
        raise UsageError("--at-most and --queue are both given; the queue decides: leave out one")
    options = EngineOptions(
        namespace=namespace,
        image=image,
        queue=queue,
        priority=priority,
        lock=lock,
        service_account=service_account,
        tolerate=tuple(tolerate or ()),
        annotations=_annotations(annotation or []),
        shared=shared,
        reservation=reservation,
        account=account,
        program=program,
        post=_post_to(post, post_keys, engine),
    )
    request = CampaignRequest(
        suite=what,
        name=name,
        nodes=nodes,
        at_most=_count("--at-most", at_most, NODES_MOST),
        exclusive=exclusive,
        time_limit_s=_time_limit_s(time_limit),
        options=options,
        given=frozenset(_given(context)),
        pairs=_pairs(pairs, rounds, seed, rack or [], rack_label, of or [], results),
    )
    runner = found(engine, options)
    campaign = begin(runner, request)
    if detach:
        if as_json:
            print_json({"campaign": campaign.name})
        else:
            typer.echo(campaign.name)
        return
    follower = Follower(runner, campaign, None if no_documents else results_directory(results))
    _followed(follower, as_json=as_json)


def _what(
    suite: str | None,
    scale: str | None,
    workload: str | None,
    params: list[str],
    trials: str | None,
    peers: str | None,
) -> "RunRequest":
    """Return what to measure on each node or pair. Raise UsageError."""
    from hostbench.cli.commands import RunRequest
    from hostbench.cli.options import check_subject, peer_choice
    from hostbench.model.suite import TRIALS_MOST

    check_subject(suite, workload, params, scale)
    return RunRequest(
        suite=suite,
        scale=scale,
        workload=workload,
        params=tuple(params),
        trials=_count("--trials", trials, TRIALS_MOST),
        peers=None if peers is None else peer_choice(peers),
        wait_s=0.0,
    )


def _pairs(
    choice: PairsChoice | None,
    rounds: str | None,
    seed: str,
    racks: list[str],
    rack_label: str | None,
    of: list[str],
    results: Path | None,
) -> "PairsRequest | None":
    """Return which pairs of nodes to measure; None: the nodes themselves."""
    from hostbench.cli.fleet_rounds import PairsRequest
    from hostbench.results.ids import results_directory

    if choice is None:
        return None
    return PairsRequest(
        choice=choice,
        rounds=rounds,
        seed=seed,
        racks=tuple(racks),
        rack_label=rack_label,
        of=tuple(of),
        root=results_directory(results),
    )


def _count(option: str, text: str | None, most: int) -> int | None:
    return None if text is None else whole_number(option, text, 1, most)


def _post_to(url: str | None, keys: str | None, engine: EngineName) -> "PostTo | None":
    """Return where nodes post. Raise UsageError for half of it, or an address to which the key
    would travel unencrypted."""
    from hostbench.client.address import Address
    from hostbench.fleet.campaign import PostTo

    if url is None and keys is None:
        return None
    if url is None or not keys:
        raise UsageError(
            "--post and --post-keys belong together: give the address of the orchestrator and what "
            "holds its key"
        )
    # Slurm's jobs have another working directory.
    held_in = str(Path(keys).absolute()) if engine == "slurm" else keys
    return PostTo(Address.parsed(url, "--post").url, held_in)


def _given(context: typer.Context) -> "Iterator[str]":
    """Yield the options on the command line, by their names in CampaignRequest and EngineOptions;
    those of the environment and defaults are no wish to change a campaign."""
    other = {"time_limit": "time_limit_s", "annotation": "annotations"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            yield other.get(name, name)


def _annotations(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise UsageError(f"--annotation {shown(text)} is not key=value; see kubectl annotate")
    return {key: value for key, _, value in pairs}


def _time_limit_s(text: str) -> float:
    limit_s = seconds("--time-limit", text)
    if not 1 <= limit_s <= TIME_LIMIT_S_MOST:
        raise UsageError(
            f"--time-limit {shown(text)} is not allowed: give 1 to {TIME_LIMIT_S_MOST:.0f} seconds"
        )
    return limit_s


def _followed(follower: "Follower", *, as_json: bool) -> None:
    from hostbench.cli.fleet_commands import exit_code

    follower.follow()
    statuses = [follower.statuses[node] for node in follower.campaign.units]
    _show(follower.campaign, statuses, as_json=as_json)
    raise typer.Exit(exit_code(statuses, follower.uncollected or follower.unposted))


def _show(campaign: "Campaign", statuses: "list[NodeStatus]", *, as_json: bool) -> None:
    from hostbench.cli.render_fleet import show_status, status_tree

    if as_json:
        print_json(status_tree(campaign, statuses))
    else:
        show_status(campaign, statuses, sys.stdout)


@fleet.command(epilog=EPILOG)
@on_engine
def status(
    runner: "Engine",
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue the campaign until it has ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the progress of each node of a campaign."""
    from hostbench.cli.fleet_commands import Follower

    campaign = runner.campaign(name)
    if follow:
        _followed(Follower(runner, campaign, None), as_json=as_json)
    _show(campaign, list(runner.status(name)), as_json=as_json)


@fleet.command("list")
@on_engine
def list_(
    runner: "Engine",
    as_json: Json = False,
) -> None:
    """List the campaigns that the engine has."""
    names = runner.campaigns()
    if as_json:
        print_json({"campaigns": names})
        return
    for name in names:
        typer.echo(name)


@fleet.command(epilog=EPILOG)
@on_engine
def results(
    runner: "Engine",
    name: Name,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Collect the documents of a campaign that are not here yet, and print their paths."""
    from hostbench.base.errors import HostbenchError
    from hostbench.base.exitcode import ExitCode
    from hostbench.cli.watching import stoppable
    from hostbench.fleet.campaign import NodeState
    from hostbench.fleet.collect import collect
    from hostbench.results.ids import results_directory

    campaign, root = runner.campaign(name), results_directory(results)
    paths: dict[str, str] = {}
    lacking: dict[str, str] = {}
    with stoppable():
        for one in runner.status(name):
            if one.state is not NodeState.MEASURED:
                continue
            try:
                paths[one.node] = str(collect(runner, campaign, one, root))
            except HostbenchError as error:
                lacking[one.node] = error.message
                continue
            if not as_json:
                typer.echo(paths[one.node])
    if as_json:
        print_json({"campaign": name, "documents": paths, "missing": lacking})
    for node, why in lacking.items():
        typer.echo(f"hostbench: {node}: {why}", err=True)
    if lacking:
        raise typer.Exit(ExitCode.CASE_FAILED)


@fleet.command(epilog=EPILOG)
@on_engine
def retry(
    runner: "Engine",
    name: Name,
    as_json: Json = False,
) -> None:
    """Measure again the nodes of a campaign that failed or are missing."""
    nodes = runner.retry(name)
    if as_json:
        print_json({"campaign": name, "nodes": nodes})
        return
    for node in nodes:
        typer.echo(node)


@fleet.command(epilog=EPILOG)
@on_engine
def cancel(
    runner: "Engine",
    name: Name,
    as_json: Json = False,
) -> None:
    """Stop the running parts of a campaign and keep what was measured."""
    runner.cancel(name)
    _show(runner.campaign(name), list(runner.status(name)), as_json=as_json)


@fleet.command(epilog=EPILOG)
@on_engine
def clean(
    runner: "Engine",
    name: Name,
    as_json: Json = False,
) -> None:
    """Remove a campaign and all that belongs to it from its cluster. Documents stored here
    stay."""
    runner.clean(name)
    if as_json:
        print_json({"campaign": name, "removed": True})
    else:
        typer.echo(f"campaign {name} is removed")


@fleet.command()
def rights(
    name: Annotated[str, typer.Argument(help="The name of the roles.")] = "hostbench-fleet",
    pods: Annotated[
        bool,
        typer.Option(
            "--pods", help="Print the roles of the pods' service account, for --lock lease."
        ),
    ] = False,
) -> None:
    """Print the roles that campaigns on Kubernetes need, for kubectl apply."""
    from hostbench.fleet.kubernetes.rights import roles

    print_json(
        {"apiVersion": "v1", "kind": "List", "items": roles(name, "pod" if pods else "client")}
    )
