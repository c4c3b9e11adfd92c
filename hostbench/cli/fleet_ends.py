"""The ends of a pair of nodes, as engines start them: the options of `fleet measure` for the near
end, and the command `fleet far-end`. They import what takes time to import."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.cli.options import EPILOG
from hostbench.model.campaign import LockName

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from hostbench.base.interrupt import Interrupt
    from hostbench.fleet.campaign import Campaign
    from hostbench.fleet.pair.end import End

ends = typer.Typer()


PairName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The pair of the campaign that has this node as an end."),
]
Meet = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help="Where the ends of the pair meet: a port of this node (:8010), the address and "
        "port of the other one, or a file that both see.",
    ),
]
MeetAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The address at which the other node reaches this one, for the file of --meet.",
    ),
]
SecretDirectory = Annotated[
    Path | None,
    typer.Option(metavar="DIRECTORY", help="The files of the campaign's key and certificate."),
]


def end_of(
    campaign: "Campaign",
    node: str,
    name: str,
    meet: str | None,
    address: str | None,
    secret: Path | None,
    lease: "Callable[[Interrupt], AbstractContextManager[object]]",
) -> "End":
    """Return this node's end of a pair. Raise UsageError."""
    from hostbench.fleet.node import waiting_s
    from hostbench.fleet.pair.end import End
    from hostbench.fleet.pair.meeting import Place
    from hostbench.fleet.pair.secret import SecretFiles

    pair = campaign.pair(name)
    if pair is None or node not in pair.nodes:
        raise UsageError(
            f"--pair {shown(name)} is not a pair of node {node} in campaign {campaign.name}; "
            "hostbench fleet run gives the right one"
        )
    if meet is None or secret is None:
        raise UsageError("--pair needs --meet and --secret; hostbench fleet run gives both")
    return End(
        campaign=campaign.name,
        pair=pair,
        is_near=node == pair.near,
        place=Place.parsed(meet),
        secret=SecretFiles(secret),
        lease=lease,
        wait_s=waiting_s(campaign),
        address=address,
    )


@ends.command("far-end", epilog=EPILOG)
def far_end(
    campaign_file: Annotated[
        Path, typer.Option(metavar="FILE", help="The campaign file that the engine provides.")
    ],
    node: Annotated[str, typer.Option(metavar="NAME", help="The name of this node.")],
    pair: PairName = None,
    meet: Meet = None,
    meet_address: MeetAddress = None,
    secret: SecretDirectory = None,
    lock: Annotated[
        LockName,
        typer.Option(
            help="How to keep other runs away: with the host's lock file, or with a Lease object."
        ),
    ] = "host",
    termination_message: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the reason of a failure.")
    ] = None,
) -> None:
    """Run the far end of a pair until its near end has ended. Engines call this command."""
    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.progress import progress_for
    from hostbench.fleet.engines import node_lease
    from hostbench.fleet.node import read_campaign, reported
    from hostbench.fleet.pair.far import far_end as serve

    interrupt = Interrupt()
    interrupt.install()
    with progress_for(sys.stderr) as progress, reported(termination_message):
        campaign = read_campaign(campaign_file)
        lease = node_lease(lock, campaign.name, node, progress.say)
        end = end_of(campaign, node, pair or "", meet, meet_address, secret, lease)
        serve(end, interrupt, progress.say)
