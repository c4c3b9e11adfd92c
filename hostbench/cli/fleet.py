"""`hostbench fleet`: campaigns over many hosts. Each command imports what takes time to import."""

import typer

from hostbench.cli.fleet_pairs import network

fleet = typer.Typer(
    name="fleet",
    help="Measure many hosts, and say which of them are bad.",
    rich_markup_mode=None,
)
fleet.add_typer(network)
