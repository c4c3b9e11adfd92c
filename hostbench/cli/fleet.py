"""`hostbench fleet`: one suite on many hosts, by Kubernetes or Slurm. Each command imports what
takes time to import."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hostbench.cli.options import EPILOG, Results

fleet = typer.Typer(
    name="fleet",
    help="Measure one suite on many hosts, by the engine that runs them: Kubernetes or Slurm.",
    rich_markup_mode=None,
)


class EngineChoice(StrEnum):
    """What runs a campaign."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"


class LockChoice(StrEnum):
    """What keeps other runs away from a node."""

    HOST = "host"
    LEASE = "lease"


@fleet.command(epilog=EPILOG)
def measure(
    campaign_file: Annotated[
        Path, typer.Option(metavar="FILE", help="The campaign, as its engine hands it out.")
    ],
    node: Annotated[str, typer.Option(metavar="NAME", help="The name of this node.")],
    engine: Annotated[EngineChoice, typer.Option(help="What started this command.")],
    lock: Annotated[
        LockChoice,
        typer.Option(help="What keeps other runs away: the host's lock file, or a Lease object."),
    ] = LockChoice.HOST,
    results: Results = None,
    termination_message: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the digest of the document goes, or why there is none."
        ),
    ] = None,
    document_to_log: Annotated[
        bool,
        typer.Option("--document-to-log", help="Write the document to standard output, encoded."),
    ] = False,
) -> None:
    """Measure this node for a campaign. Engines call it; its exit code is 0 with a document."""
    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.progress import progress_for
    from hostbench.fleet.node import (
        NodeRequest,
        measure_node,
        read_campaign,
        reported,
        write_document,
    )
    from hostbench.results.ids import results_directory

    interrupt = Interrupt()
    interrupt.install()
    with progress_for(sys.stderr) as progress, reported(termination_message):
        request = NodeRequest(
            campaign=read_campaign(campaign_file),
            node=node,
            engine=engine.value,
            results=results_directory(results),
            lock=lock.value,
            message=termination_message,
        )
        document = measure_node(request, interrupt, progress)
    if document_to_log:
        write_document(document, sys.stdout)
