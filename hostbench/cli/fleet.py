"""`hostbench fleet`: campaigns over many hosts. Each command imports what takes time to import."""

import typer

from hostbench.cli.fleet_report import reports

fleet = typer.Typer(
    name="fleet",
    help="Measure many hosts, and say which of them are bad.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
fleet.add_typer(reports)


@fleet.callback()
def _fleet() -> None:
    """Measure many hosts, and say which of them are bad."""
