"""The entry point of `hostbench` and `python -m hostbench`."""

import os
import signal
import sys

LAST_STANDARD_STREAM = 2


def main() -> int:
    """Run the command line; return the exit code."""
    _open_closed_streams()
    try:
        # Imported here, so that a Ctrl-C while modules load ends as quietly as a later one.
        from hostbench.cli.command_line import run_command_line

        return run_command_line(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    finally:
        # The interpreter puts default handlers back while it ends; a second Ctrl-C would then
        # replace the exit code by its own death.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _open_closed_streams() -> None:
    """Open the standard streams that the caller closed.

    Otherwise, after `hostbench >&-`, a pipe or a journal could get the number of a standard stream.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= LAST_STANDARD_STREAM:
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    sys.exit(main())
