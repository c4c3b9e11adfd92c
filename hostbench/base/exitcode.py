"""The exit codes of the `hostbench` command: this table is what `--help` prints."""

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of `hostbench` for the shell."""

    OK = 0
    CASE_FAILED = 1
    USAGE = 2
    RESOURCE = 3
    NOTHING_RAN = 4
    INVALID = 5
    NOT_IDLE = 6
    BUSY = 7
    UNREACHABLE = 8
    ENDED_EARLY = 9
    CORRUPT = 10
    WORSE = 20
    UNDECIDED = 21
    NOT_COMPARABLE = 22
    NOT_RESTORED = 23
    HANGUP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        """The meaning of the code for people."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "measured (the verdicts may be clean, noisy or disturbed)",
    ExitCode.CASE_FAILED: "a case failed",
    ExitCode.USAGE: "usage: a bad option, suite, parameter or job id",
    ExitCode.RESOURCE: "a resource is missing: program, results directory, space, permission",
    ExitCode.NOTHING_RAN: "nothing could run here: every case was skipped",
    ExitCode.INVALID: "a figure is above its limit",
    ExitCode.NOT_IDLE: "the host was not idle and the idle policy is fail",
    ExitCode.BUSY: "another run holds this host",
    ExitCode.UNREACHABLE: "the orchestrator or the cluster cannot be reached, refuses the key, or "
    "cannot work now",
    ExitCode.ENDED_EARLY: "the job was cancelled or lost; what was measured is kept",
    ExitCode.CORRUPT: "corrupt: a result failed its verification; trust nothing this host computes",
    ExitCode.WORSE: "compared: a figure is worse",
    ExitCode.UNDECIDED: "compared: a figure is undecided; more jobs would decide it",
    ExitCode.NOT_COMPARABLE: "compared: no figure of the two sides can be compared",
    ExitCode.NOT_RESTORED: "the setting that was tested is still in force: its restore failed",
    ExitCode.HANGUP: "ended by SIGHUP; what was measured is kept",
    ExitCode.INTERRUPTED: "ended by SIGINT (Ctrl-C); what was measured is kept",
    ExitCode.BROKEN_PIPE: "the reader of the output closed it",
    ExitCode.TERMINATED: "ended by SIGTERM; what was measured is kept",
}


def exit_code_table(own: Mapping[ExitCode, str] | None = None, *others: ExitCode) -> str:
    """Return the codes and their meanings, one on each line: all, or those of a command. `own` has
    what a code means there; `others` mean what they always do."""
    meanings = {code: code.meaning for code in (others if own is not None else ExitCode)}
    meanings |= own or {}
    return "\n".join(f"{code.value:>3}  {meanings[code]}" for code in ExitCode if code in meanings)
