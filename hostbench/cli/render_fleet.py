"""Campaigns as text for people."""

from collections.abc import Sequence
from typing import TextIO

from pydantic import TypeAdapter
from rich.table import Table

from hostbench.base.units import plural, some_of
from hostbench.cli.fleet_commands import counts_text
from hostbench.cli.render_list import console_for
from hostbench.fleet.campaign import Campaign, NodeState, NodeStatus
from hostbench.judge.peer import shown_text

STATUSES: TypeAdapter[tuple[NodeStatus, ...]] = TypeAdapter(tuple[NodeStatus, ...])
NODES_SHOWN = 5


def status_tree(campaign: Campaign, statuses: Sequence[NodeStatus]) -> dict[str, object]:
    """Return the status of a campaign as JSON."""
    return {
        "campaign": campaign.name,
        "cluster": campaign.cluster,
        "suite": campaign.suite.name,
        f"{campaign.unit_word}s": STATUSES.dump_python(tuple(statuses), mode="json"),
    }


def show_status(campaign: Campaign, statuses: Sequence[NodeStatus], stream: TextIO) -> None:
    """Print how many nodes or pairs are how far, then those without a document by their reason."""
    console = console_for(stream)
    console.print(
        f"{campaign.name}: {campaign.suite.name} on {plural(len(statuses), campaign.unit_word)}: "
        f"{counts_text(statuses)}"
    )
    groups: dict[tuple[NodeState, str], list[str]] = {}
    for status in statuses:
        reason = status.reason
        if status.result is not None and status.result.unposted is not None:
            reason = f"its document is not posted: {status.result.unposted}"
        if reason is not None:
            groups.setdefault((status.state, reason), []).append(status.node)
    if not groups:
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("state", no_wrap=True)
    table.add_column(f"{campaign.unit_word}s", overflow="fold")
    table.add_column("reason", overflow="fold")
    for (state, reason), nodes in groups.items():
        table.add_row(state, some_of(nodes, NODES_SHOWN), shown_text(reason))
    console.print(table)
