"""What several commands share: options, the checks of their values, the forms of output.

Each function imports what takes time to import.
"""

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode, exit_code_table

if TYPE_CHECKING:
    from hostbench.model.result import ResultDocument
    from hostbench.model.suite import PeerChoice

EPILOG_HEAD = "Exit codes:\n\n\b\n"
EPILOG = EPILOG_HEAD + exit_code_table()
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def own_epilog(own: Mapping[ExitCode, str], *more: ExitCode) -> str:
    """Return the exit codes of a command that measures nothing: its own, those of wrong calls, and
    `more` with their usual meaning."""
    usual = (ExitCode.USAGE, ExitCode.RESOURCE, *more)
    return EPILOG_HEAD + exit_code_table(own, *usual)


class IdlePolicy(StrEnum):
    """What to do on a host that does not become idle."""

    FAIL = "fail"
    FLAG = "flag"
    FORCE = "force"


def _workload_names(incomplete: str) -> list[tuple[str, str]]:
    from hostbench.cli.completion import workload_names

    return workload_names(incomplete)


def _assignments(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from hostbench.cli.completion import assignments

    return assignments(ctx, incomplete)


Namespace = Annotated[
    str | None,
    typer.Option(help="Kubernetes: the namespace of the campaign. Default: that of kubectl."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV in base units to standard output.")]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results", help="Results directory. Default: HOSTBENCH_RESULTS, otherwise ./results."
    ),
]
SuiteName = Annotated[
    str | None,
    typer.Argument(help="A suite by name (hostbench list suites) or path. Default: quick."),
]
Wait = Annotated[
    str,
    typer.Option(metavar="SECONDS", help="How long to wait for another run on this host to end."),
]
Workload = Annotated[
    str | None,
    typer.Option(
        help="Measure one workload instead, such as cpu.fma.", autocompletion=_workload_names
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Scale of a suite that has several (hostbench list suites). Default: the first.",
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        help="A parameter of the workload, as name=value; the value all stands for every choice.",
        autocompletion=_assignments,
    ),
]
Trials = Annotated[
    str | None, typer.Option(metavar="N", help="Run exactly this many trials per case.")
]
Margin = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="A change that is certainly below this counts as same. Default: 2 to 10, by the "
        "subsystem.",
    ),
]
Idle = Annotated[
    IdlePolicy | None,
    typer.Option(
        help="If the host is not idle. fail: stop; flag: measure and flag the result; "
        "force: measure without checking."
    ),
]
Peers = Annotated[
    str | None,
    typer.Option(
        metavar="auto|none|NAME,NAME",
        help="Peer tools to measure in turn with hostbench, such as likwid-bench, sysbench or "
        "fio. Default: those of the suite; for one workload: none.",
    ),
]

FarHostUrl = Annotated[
    str | None,
    typer.Option(
        "--far-host",
        metavar="URL",
        help="The net service of a second host, where network cases have their far ends, such as "
        "https://node-b:8004. Default: HOSTBENCH_FAR_HOST, else loopback.",
    ),
]
FarKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--far-key-file",
        metavar="FILE",
        help="File with the key of that service. Default: HOSTBENCH_FAR_KEY_FILE.",
    ),
]
FarCaFile = Annotated[
    Path | None,
    typer.Option(
        "--far-ca",
        metavar="FILE",
        help="CA that signed the service's certificate. Default: HOSTBENCH_FAR_CA_FILE, "
        "otherwise those of the system.",
    ),
]

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="URL of the orchestrator. Default: HOSTBENCH_URL, otherwise the configuration.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with the orchestrator's key. Default: "
        "HOSTBENCH_API_KEY_FILE, otherwise the configuration.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CA that signed the orchestrator's certificate. Default: HOSTBENCH_CA_FILE, "
        "otherwise the configuration.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Configuration file. Default: HOSTBENCH_CONFIG, otherwise "
        "~/.config/hostbench/config.toml.",
    ),
]


def whole_number(option: str, text: str, low: int, high: int) -> int:
    """Return `text` as a whole number from `low` to `high`. Raise UsageError."""
    if _INTEGER.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise UsageError(
        f"{option} {shown(text)} is not allowed: give a whole number from {low} to {high}"
    )


def seconds(option: str, text: str) -> float:
    """Return `text` as a time of 0 or more seconds, including `inf`. Raise UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value >= 0:  # nan is not
        return value
    raise UsageError(f"{option} {shown(text)} is not a time; give 0 or more seconds")


def peer_choice(text: str) -> "PeerChoice":
    """Return `auto`, `none`, or the tools of a list such as `likwid-bench,sysbench`. Raise
    UsageError."""
    if text == "auto":
        return "auto"
    if text == "none":
        return "none"
    tools = [tool.strip() for tool in text.split(",")]
    if not all(tools):
        raise UsageError(
            f"--peers {shown(text)} is not a list of tools; "
            "give auto, none, or names with commas between them"
        )
    return tools


def assignments(texts: Sequence[str], option: str = "--param") -> dict[str, str]:
    """Return `{"threads": "2"}` for `threads=2`; hyphens in a name become underscores. Raise
    UsageError."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not value:
            raise UsageError(f"{option} {shown(text)} is not name=value; write it like threads=2")
        if name in given:
            raise UsageError(f"{option} {name} is given twice; give it once")
        given[name] = value
    return given


def check_subject(
    suite: str | None, workload: str | None, params: Sequence[str], scale: str | None = None
) -> None:
    """Raise UsageError for a suite or its scale together with a workload, and for parameters
    without a workload."""
    if workload is not None and suite is not None:
        raise UsageError(
            f"suite {shown(suite)} and --workload {shown(workload)} are both given; leave out one"
        )
    if workload is not None and scale is not None:
        raise UsageError(
            f"--scale {shown(scale)} is a scale of a suite, and --workload {shown(workload)} "
            "measures none; leave out one"
        )
    if params and workload is None:
        raise UsageError(
            f"--param {shown(params[0])} needs --workload; "
            "the parameters of a suite stand in its file"
        )


def refuse_both(as_json: bool, as_csv: bool) -> None:
    """Raise UsageError when two forms of output are chosen."""
    if as_json and as_csv:
        raise UsageError("--json and --csv are both given; leave out one")


def print_json(content: object) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(content, indent=1))


def print_document(document: "ResultDocument", *, as_json: bool, as_csv: bool) -> None:
    """Print a result as a table, or in the form that an option selects."""
    if as_json:
        typer.echo(document.model_dump_json(indent=1))
    elif as_csv:
        from hostbench.results.csv import case_table

        sys.stdout.write(case_table(document))
    else:
        from hostbench.cli.render import show_result

        show_result(document, sys.stdout)


def with_options(reach: Callable[..., Any], function: Callable[..., None]) -> Callable[..., None]:
    """Return a command from a function that takes something before its own options, such as an
    orchestrator: what the context that `reach` returns yields. The options of `reach` are added."""
    own = list(inspect.signature(function).parameters.values())[1:]
    shared = list(inspect.signature(reach).parameters.values())

    def command(**options: Any) -> None:
        given = {parameter.name: options.pop(parameter.name) for parameter in shared}
        with reach(**given) as found:
            function(found, **options)

    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command
