"""What every command line has in common: expected errors, and lost output, take one line."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.base.exitcode import ExitCode

OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit code. Expected errors are one line on stderr."""
    # A character that the terminal's encoding lacks must not cost the result.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # head` ends|`hostbench … | head` ends quietly, like programs that die of SIGPIPE.
        _to_nowhere(sys.stdout)
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        _to_nowhere(sys.stdout)
        return _complain(
            ResourceError(f"cannot write the output: {error.strerror}; free space, or pipe it on")
        )
    finally:
        # The reader of the progress may have gone; the result counts anyway.
        try:
            sys.stderr.flush()
        except OSError:
            _to_nowhere(sys.stderr)


def _invoke(arguments: Sequence[str]) -> int:
    try:
        return _run(arguments)
    except SystemExit as end:
        # Typer and rich end the process by themselves when a shell's completion is answered, and
        # with another code for a broken pipe.
        if end.code == ExitCode.OK:
            return ExitCode.OK
        raise BrokenPipeError from None
    except HostbenchError as error:
        if "--json" in arguments:
            from hostbench.cli.options import print_json

            print_json({"error": {"exit_code": int(error.exit_code), "message": error.message}})
        return _complain(error)


def _run(arguments: Sequence[str]) -> int:
    # Typer and its option types take longer to import than a whole listing.
    if list(arguments) == ["list"]:
        from hostbench.cli.listing import JOBS_SHOWN, job_summaries
        from hostbench.cli.render_list import show_jobs

        show_jobs(*job_summaries(None, JOBS_SHOWN), sys.stdout)
        return ExitCode.OK
    from hostbench.cli.app import invoke

    return invoke(arguments)


def _complain(error: HostbenchError) -> int:
    try:
        sys.stderr.write(f"hostbench: {error.message}\n")
        sys.stderr.flush()
    except OSError:
        _to_nowhere(sys.stderr)
    return error.exit_code


def _to_nowhere(stream: TextIO) -> None:
    """Redirect the stream to nowhere, so that the interpreter does not fail on it again when it
    ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
