"""Options that several commands have in common."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hostbench.base.exitcode import exit_code_table

EPILOG = "Exit codes:\n\n\b\n" + exit_code_table()


class IdlePolicy(StrEnum):
    """What to do on a host that does not become idle."""

    FAIL = "fail"
    FLAG = "flag"
    FORCE = "force"


# Reading tables takes time to import: only when a shell completes.


def _workload_names(incomplete: str) -> list[tuple[str, str]]:
    from hostbench.cli.completion import workload_names

    return workload_names(incomplete)


def _assignments(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from hostbench.cli.completion import assignments

    return assignments(ctx, incomplete)


Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Csv = Annotated[bool, typer.Option("--csv", help="CSV on standard output, base units.")]
SuiteName = Annotated[
    str | None,
    typer.Argument(help="A suite by name (hostbench list suites) or path. Default: quick."),
]
Wait = Annotated[
    str, typer.Option(metavar="SECONDS", help="How long to wait for another run on this host.")
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
        help="How much of a suite that has scales (hostbench list suites). Default: the first.",
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        help="A parameter of it, as name=value; all stands for every choice.",
        autocompletion=_assignments,
    ),
]
Trials = Annotated[str | None, typer.Option(metavar="N", help="Exactly so many trials a case.")]
Idle = Annotated[
    IdlePolicy | None,
    typer.Option(help="When the host is not idle: end, measure and say so, or do not ask."),
]
Peers = Annotated[
    str | None,
    typer.Option(
        metavar="auto|none|NAME,NAME",
        help="Tools measured in turn with ours, such as likwid-bench, sysbench or fio. "
        "Default: as the suite says; one workload: none.",
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
        help="A file with its key. Default: HOSTBENCH_FAR_KEY_FILE.",
    ),
]
FarCaFile = Annotated[
    Path | None,
    typer.Option(
        "--far-ca",
        metavar="FILE",
        help="Who signed its certificate. Default: HOSTBENCH_FAR_CA_FILE, the system's.",
    ),
]

Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="The orchestrator. Default: HOSTBENCH_URL, configuration."
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="A file with its key. Default: HOSTBENCH_API_KEY_FILE, configuration."
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Who signed its certificate. Default: HOSTBENCH_CA_FILE, configuration.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The configuration. Default: HOSTBENCH_CONFIG, ~/.config/hostbench/config.toml.",
    ),
]
