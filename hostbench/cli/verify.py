"""`hostbench verify`: does this host compute correctly? The command imports what takes time to
import."""

import re
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import HostbenchError, UsageError, listing, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.options import Json, Results, Wait, own_epilog, seconds, whole_number

if TYPE_CHECKING:
    from hostbench.base.interrupt import Interrupted
    from hostbench.cli.progress import PlainProgress
    from hostbench.model.verification import Exposure, Finding, Verification
    from hostbench.results.output import GrowingOutput
    from hostbench.results.verifications import VerificationStore

verification = typer.Typer()

CODES = own_epilog(
    {
        ExitCode.OK: "no error in what was checked",
        ExitCode.CORRUPT: "this host computed a wrong result",
    },
    ExitCode.CASE_FAILED,
    ExitCode.NOTHING_RAN,
    ExitCode.BUSY,
    ExitCode.HANGUP,
    ExitCode.INTERRUPTED,
    ExitCode.TERMINATED,
)
_SPAN = re.compile(r"(\d{1,6}(?:\.\d+)?)(s|m|h|d)?", re.ASCII)
_UNIT_S = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SPAN_S_MOST = 30 * 86400.0
# mem-bench leaves the rest (`size_share`).
MEMORY_PERCENT_MOST = 90
OCP, OCP_WHAT = "--ocp", "the lines for OCP"


@verification.command(epilog=CODES)
def verify(
    for_: Annotated[
        str,
        typer.Option("--for", metavar="TIME", help="How long, such as 90s, 10m, 8h or 2d."),
    ] = "10m",
    subsystem: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these subsystems: cpu, mem, gpu."),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            metavar="PERCENT", help="The share of the free memory that the patterns fill."
        ),
    ] = "80",
    seed: Annotated[
        str | None,
        typer.Option(metavar="N", help="The seed of the first round. Default: a random one."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Add to an earlier verification of this host, or latest."),
    ] = None,
    wait: Wait = "0",
    openmetrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.prom",
            help="Also write how much was checked, and errors, for node_exporter.",
        ),
    ] = None,
    ocp: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write, while it runs, JSON lines of OCP's Test & Validation, version 2.0; - "
            "for standard output, in place of the text.",
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Check that this host computes correctly: every kernel of CPU, memory and GPU, bit by bit.

    All CPUs at once, then each alone; other numbers in every round; patterns in most of the memory.
    It needs the host to itself. Ctrl-C keeps what was checked so far.
    """
    from hostbench.base.interrupt import Interrupt
    from hostbench.cli.progress import PlainProgress
    from hostbench.results.ids import results_directory
    from hostbench.results.output import STANDARD_OUTPUT
    from hostbench.results.verifications import VerificationStore
    from hostbench.run.verification import SEED_MOST, SUBSYSTEMS, VerifyRequest, run_verification

    interrupt = Interrupt()
    interrupt.install()
    for name in subsystem or ():
        if name not in SUBSYSTEMS:
            raise UsageError(
                f"--subsystem {shown(name)} computes nothing; give {listing(SUBSYSTEMS)}"
            )
    if openmetrics is not None:
        from hostbench.page.series import check_textfile

        check_textfile(openmetrics)
    if ocp is not None:
        _check_ocp(ocp, as_json)
    store = VerificationStore(results_directory(results))
    if resume is not None:
        resume = store.load(resume).id  # so that a wrong one is refused before the wait
    request = VerifyRequest(
        duration_s=_span_s(for_),
        subsystems=tuple(dict.fromkeys(subsystem or ())),
        memory_share=whole_number("--memory", memory, 1, MEMORY_PERCENT_MOST) / 100,
        seed=None if seed is None else whole_number("--seed", seed, 0, SEED_MOST),
        wait_s=seconds("--wait", wait),
        earlier=None if resume is None else partial(store.load, resume),
    )
    progress = PlainProgress(sys.stderr)
    lines = None
    if ocp is not None:
        options: dict[str, object] = {"for": for_, "subsystem": subsystem, "memory": memory}
        options |= {"seed": seed, "resume": resume}
        given = {name: value for name, value in options.items() if value is not None}
        lines = _OcpLines(ocp, given, progress)
    found, signal = run_verification(request, interrupt, _Keeper(progress, store, lines))
    code = exit_code(found, signal)
    failure = None if lines is None else lines.end(found, code)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    elif ocp != STANDARD_OUTPUT:
        show_verification(found, store.path(found.id), sys.stdout)
    if openmetrics is not None:
        try:
            _write_series(found, openmetrics)
        except HostbenchError as error:
            typer.echo(f"hostbench: {error.message}", err=True)
            failure = failure or error
    if failure is not None and code is ExitCode.OK:
        code = failure.exit_code
    raise typer.Exit(code)


def _write_series(found: "Verification", target: Path) -> None:
    from hostbench.page.series import write_verification

    write_verification(found, target)


def _check_ocp(target: str, as_json: bool) -> None:
    """Refuse what cannot be written before anything is checked. Raise HostbenchError."""
    from hostbench.results.output import STANDARD_OUTPUT, check_output

    if target != STANDARD_OUTPUT:
        check_output(OCP, OCP_WHAT, Path(target), "verify.jsonl")
    elif as_json:
        raise UsageError(f"{OCP} - and --json both want standard output; give {OCP} a file")


class _OcpLines:
    """The lines for OCP, from the first state of the verification on. If they cannot go on, the
    verification does: that is shown once."""

    def __init__(self, target: str, given: Mapping[str, object], progress: "PlainProgress") -> None:
        """`given`: the options and their values."""
        from hostbench.page.ocp import OcpStream

        self._target = target
        self._progress = progress
        self._output: GrowingOutput | None = None
        self._error: HostbenchError | None = None
        self._stream = OcpStream(self._write, shlex.join(["hostbench", *sys.argv[1:]]), given)

    def keep(self, found: "Verification") -> None:
        """Write what is new. Raise ResourceError if the output cannot be opened."""
        from hostbench.results.output import GrowingOutput

        if self._output is None:
            self._output = GrowingOutput(OCP, OCP_WHAT, self._target)
        self._stream.keep(found)

    def end(self, found: "Verification", code: ExitCode) -> HostbenchError | None:
        """Write what is new, and the end. Return the error that cost lines, or None."""
        self._stream.end(found, code)
        return self._error

    def _write(self, line: str) -> None:
        if self._output is None or self._error is not None:
            return
        try:
            self._output.add(line)
        except HostbenchError as error:
            self._error = error
            self._progress.say(error.message)


class _Keeper:
    """See Keeper."""

    def __init__(
        self, progress: "PlainProgress", store: "VerificationStore", lines: _OcpLines | None
    ) -> None:
        self._store = store
        self._lines = lines
        self.say = progress.say

    def keep(self, verification: "Verification") -> None:
        """See Keeper.keep."""
        if self._lines is not None:
            self._lines.keep(verification)
        self._store.store(verification)


def _span_s(text: str) -> float:
    """Return a time such as 90, 90s, 10m, 8h or 2d, in seconds. Raise UsageError."""
    match = _SPAN.fullmatch(text)
    found = float(match[1]) * _UNIT_S[match[2]] if match else 0.0
    if not 0 < found <= SPAN_S_MOST:
        raise UsageError(
            f"--for {shown(text)} is not allowed: give above 0 to 30 days, such as 90s, 10m, 8h "
            "or 2d"
        )
    return found


def exit_code(found: "Verification", signal: "Interrupted | None") -> ExitCode:
    """Return the exit code: that this host computes wrong comes before everything else."""
    if found.is_corrupt:
        return ExitCode.CORRUPT
    if signal is not None:
        return signal.exit_code
    if found.failed:
        return ExitCode.CASE_FAILED
    return ExitCode.OK if found.exposures else ExitCode.NOTHING_RAN


def show_verification(found: "Verification", path: Path, stream: TextIO) -> None:
    """Print what was found, then what was checked, for people."""
    print("\n".join([*_lines(found), f"all of it: {path}"]), file=stream)


def _lines(found: "Verification") -> list[str]:
    from hostbench.base.units import duration, plural, some_of

    lines = [line for finding in found.findings for line in finding_lines(finding)]
    if found.is_corrupt:
        lines.insert(0, f"corrupt: {found.hostname} computed a wrong result")
    lines += [exposure_sentence(one, len(found.cpus), len(found.gpus)) for one in found.exposures]
    if not found.exposures:
        lines.append("nothing was checked")
    parts = f" in {found.parts} parts" if found.parts > 1 else ""
    by = "" if found.ended in ("time", "errors") else f", ended by {found.ended}"
    lines.append(
        f"{duration(found.elapsed_s)}{parts}{by}, {plural(len(found.seeds), 'seed')} from "
        f"{found.seeds[0]} on"
        if found.seeds
        else f"{duration(found.elapsed_s)}{parts}{by}"
    )
    if found.clock_hertz is not None:
        low, high = (f"{hertz / 1e9:.2f}" for hertz in found.clock_hertz)
        lines.append(f"clock: {low} to {high} GHz")
    if found.celsius_most is not None:
        lines.append(f"temperature: at most {found.celsius_most:.0f} °C")
    lines.append(_hardware_errors(found))
    if found.not_run:
        lines.append(f"not here: {some_of(sorted(found.not_run), 6)}")
    lines += [f"failed: {label}: {reason}" for label, reason in found.failed.items()]
    return lines


def exposure_sentence(one: "Exposure", cpus: int, gpus: int) -> str:
    """Return how much was checked of a subsystem, and what follows for the rate of errors."""
    from hostbench.base.units import plural

    reached, of, kind = len(one.checks_of_cpu), cpus, "CPU"
    if one.checks_of_gpu:
        reached, of, kind = len(one.checks_of_gpu), gpus, "GPU"
    where = f" on {plural(reached, kind)}" if reached else ""
    if 0 < reached < of:
        where += f" of {of}"
    checked = f"{one.checks:.3g} {one.unit}s{where}"
    if one.rate_most is None:
        in_trials = f"{plural(one.errors, 'wrong trial')} of {one.trials}"
        return f"{one.subsystem}: {in_trials}, besides {checked} without an error"
    return (
        f"{one.subsystem}: 0 errors in {checked}: "
        f"at most {one.rate_most:.1e} errors per {one.unit} at 95 %"
    )


def finding_lines(finding: "Finding") -> list[str]:
    """Return what was wrong, how often again, and how to run it again."""
    where = "" if finding.gpu is None else f", GPU {finding.gpu}"
    lines = [f"  {finding.workload}{where}, seed {finding.seed}: {finding.message}"]
    wrong = finding.wrong
    if wrong is not None:
        bits = ", ".join(map(str, wrong.bits))
        lines.append(f"    CPU {wrong.cpu}, {wrong.place}: bits {bits}")
    for one in finding.retests:
        where = f" on CPU {one.cpus}" if one.cpus else ""
        lines.append(f"    again{where}: wrong in {one.wrong} of {one.trials} trials")
    return [*lines, f"    {finding.command}"]


def _hardware_errors(found: "Verification") -> str:
    from hostbench.base.units import plural

    if not found.hardware_errors:
        return "hardware errors: the kernel counts none here (no EDAC, no machine checks)"
    counted = [f"{count} ({source})" for source, count in found.hardware_errors.items() if count]
    if not counted:
        counters = plural(len(found.hardware_errors), "counter")
        return f"hardware errors meanwhile: none in {counters} of the kernel"
    return f"hardware errors meanwhile: {'; '.join(counted)}"
