"""The options that the commands of campaigns share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.cli.options import Namespace, with_options
from hostbench.model.campaign import EngineName

if TYPE_CHECKING:
    from hostbench.fleet.campaign import Engine


def _checked(name: str | None) -> str | None:
    """Return a NAME that can be one: no engine is called for another. Raise UsageError."""
    from hostbench.fleet.campaign import checked_name

    return None if name is None else checked_name(name, "NAME")


Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A campaign that fleet list shows.", callback=_checked),
]
OptionalName = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="A campaign that fleet list shows. Without one: the qualified nodes that have to "
        "be measured again because their system has changed.",
        callback=_checked,
    ),
]
EngineOption = Annotated[EngineName, typer.Option(help="What runs the campaign.")]
Shared = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        envvar="HOSTBENCH_SHARED",
        help="Slurm: the directory of the campaigns, which all nodes must see.",
    ),
]


def _engine(
    engine: EngineOption = "kubernetes", namespace: Namespace = None, shared: Shared = None
) -> "AbstractContextManager[Engine]":
    """Return the engine for campaigns that exist."""
    from hostbench.fleet.engines import EngineOptions
    from hostbench.fleet.engines import engine as found

    return nullcontext(found(engine, EngineOptions(namespace=namespace, shared=shared)))


def on_engine(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command from a function that takes the engine before its own options: the options
    that say which engine are added."""
    return with_options(_engine, function)
