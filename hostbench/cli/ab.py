"""`hostbench ab`: does a setting matter? The command imports what takes time to import."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.decisions import margin_ratio
from hostbench.cli.options import (
    Idle,
    Json,
    Margin,
    Param,
    Wait,
    assignments,
    own_epilog,
    seconds,
    whole_number,
)

if TYPE_CHECKING:
    from hostbench.model.decision import SettingTest
    from hostbench.run.ab import Setting

settings = typer.Typer()

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
TIMEOUT_S_MOST = 3600.0
_ENDED = (
    (ExitCode.HANGUP, "ended by SIGHUP"),
    (ExitCode.INTERRUPTED, "ended by SIGINT (Ctrl-C)"),
    (ExitCode.TERMINATED, "ended by SIGTERM"),
)
CODES = own_epilog(
    {
        ExitCode.OK: "B is better than A, or the same",
        ExitCode.CASE_FAILED: "a trial or a command of a side failed",
        ExitCode.WORSE: "B is worse than A",
        ExitCode.UNDECIDED: "undecided after the most blocks",
        **{code: f"{how}; the setting is restored, no result is kept" for code, how in _ENDED},
    },
    ExitCode.NOTHING_RAN,
    ExitCode.NOT_IDLE,
    ExitCode.BUSY,
    ExitCode.CORRUPT,
    ExitCode.NOT_RESTORED,
)


@settings.command(epilog=CODES)
def ab(
    workload: Annotated[
        str, typer.Option(help="Workload to measure under both settings, such as mem.read.")
    ],
    param: Param = None,
    a: Annotated[
        list[str] | None, typer.Option("--a", metavar="NAME=VALUE", help="A parameter of side A.")
    ] = None,
    b: Annotated[
        list[str] | None, typer.Option("--b", metavar="NAME=VALUE", help="A parameter of side B.")
    ] = None,
    a_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An environment variable for the trials of A."),
    ] = None,
    b_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An environment variable for the trials of B."),
    ] = None,
    a_command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Shell command to run before each trial of A."),
    ] = None,
    b_command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Shell command to run before each trial of B."),
    ] = None,
    restore_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Shell command to run at the end in any case, even after Ctrl-C and kill -9.",
        ),
    ] = None,
    command_timeout: Annotated[
        str, typer.Option(metavar="SECONDS", help="Time limit of each command.")
    ] = "30",
    blocks: Annotated[
        str,
        typer.Option(metavar="N", help="Maximum number of blocks of four trials, from 8 to 96."),
    ] = "24",
    margin: Margin = None,
    idle_policy: Idle = None,
    wait: Wait = "0",
    as_json: Json = False,
) -> None:
    """Decide whether a setting matters: measure two settings in turn on this host.

    It measures blocks of A B B A or B A A B until the result is decided, at most 24; better and
    worse refer to B. A side is a parameter, an environment variable, a command, or several of
    these.
    """
    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.progress import progress_for
    from hostbench.decisions.ab import BLOCKS_LEAST, BLOCKS_MOST
    from hostbench.run.ab import SettingRequest, run_setting_test

    interrupt = Interrupt()
    interrupt.install()
    sides = (
        _side("a", a, a_env, a_command),
        _side("b", b, b_env, b_command),
    )
    _check_commands(a_command, b_command, restore_command)
    if not any(side.params or side.environment or side.command for side in sides):
        raise UsageError(
            "A and B have no settings; give each a parameter (--a threads=1 --b threads=2), a "
            "variable (--a-env, --b-env) or a command (--a-command, --b-command, --restore-command)"
        )
    request = SettingRequest(
        workload=workload,
        params=assignments(param or ()),
        a=sides[0],
        b=sides[1],
        blocks_most=whole_number("--blocks", blocks, BLOCKS_LEAST, BLOCKS_MOST),
        restore=restore_command,
        command_timeout_s=_timeout_s(command_timeout),
        margin=None if margin is None else margin_ratio(margin),
        idle_policy=idle_policy.value if idle_policy else None,
        wait_s=seconds("--wait", wait),
    )
    with progress_for(sys.stderr) as progress:
        test = run_setting_test(request, interrupt, progress)
    if as_json:
        typer.echo(test.model_dump_json(indent=1))
    else:
        show_test(test, sys.stdout)
    if test.not_restored is not None:
        typer.echo(f"hostbench: {test.not_restored}", err=True)
    raise typer.Exit(_exit_code(test))


def _side(
    name: str, params: list[str] | None, variables: list[str] | None, command: str | None
) -> "Setting":
    """Return one side from its options. Raise UsageError."""
    from hostbench.run.ab import Setting

    environment = {}
    for text in variables or ():
        variable, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(variable):
            raise UsageError(
                f"--{name}-env {shown(text)} is not NAME=VALUE; write it like MALLOC_ARENA_MAX=1"
            )
        environment[variable] = value
    if command is not None and not command.strip():
        raise UsageError(f"--{name}-command is empty; leave it out, or give : to change nothing")
    return Setting(assignments(params or (), f"--{name}"), environment, command)


def _check_commands(a: str | None, b: str | None, restore: str | None) -> None:
    """Raise UsageError if commands are given but a side, or the end, has none."""
    given = {"--a-command": a, "--b-command": b, "--restore-command": restore}
    missing = [option for option, command in given.items() if not (command or "").strip()]
    if 0 < len(missing) < len(given):
        raise UsageError(
            f"{' and '.join(missing)} is missing; a setting by commands needs one for A, one for B "
            "and one that restores it (: does nothing)"
        )


def _timeout_s(text: str) -> float:
    found = seconds("--command-timeout", text)
    if not 0 < found <= TIMEOUT_S_MOST:
        raise UsageError(
            f"--command-timeout {shown(text)} is out of range; give above 0 to {TIMEOUT_S_MOST:g} "
            "seconds"
        )
    return found


def _exit_code(test: "SettingTest") -> ExitCode:
    from hostbench.model.decision import Word

    if test.not_restored is not None:
        return ExitCode.NOT_RESTORED
    codes = {Word.WORSE: ExitCode.WORSE, Word.UNDECIDED: ExitCode.UNDECIDED}
    return codes.get(test.word, ExitCode.OK)


def show_test(test: "SettingTest", stream: TextIO) -> None:
    """Print the answer, both sides, a row for each figure, and the error rate."""
    from rich.table import Table
    from rich.text import Text

    from hostbench.cli.render_compare import STYLES
    from hostbench.cli.render_list import console_for
    from hostbench.decisions import ab_words as words
    from hostbench.decisions.words import relative

    console = console_for(stream)
    console.print(words.headline(test), style=STYLES[test.word], markup=False)
    for name, side in (("A", test.a), ("B", test.b)):
        console.print(f"{name} {words.side_sentence(side)}", markup=False)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("figure")
    for column in ("A", "B", "change", "interval", "blocks"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("word", no_wrap=True)
    for kind, figure in test.figures.items():
        table.add_row(
            str(kind),
            words.value(figure.value_a, test),
            words.value(figure.value_b, test),
            "–" if figure.ratio is None else relative(figure.ratio),
            words.interval(figure),
            str(figure.blocks),
            Text(figure.word, style=STYLES[figure.word]),
        )
    if test.figures:
        console.print(table)
    console.print(words.blocks_sentence(test))
    for sentence in (*words.more_sentences(test), words.error_sentence(test)):
        console.print(sentence, markup=False)
