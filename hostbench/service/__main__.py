"""`python -m hostbench.service NAME`: the service of a subsystem."""

import os
import signal
import sys

from hostbench.base.errors import HostbenchError, UsageError, listing
from hostbench.base.packages import needs_packages
from hostbench.model.registry import subsystem_names

# The longest grace of a trial, a peer's, and a little more.
GRACE_S = 15


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    # The parent process may ignore SIGCHLD, and then the kernel drops the exit codes of programs.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        if len(arguments) != 1:
            raise UsageError(f"give one subsystem: {listing(sorted(subsystem_names()))}")
        # Imported here, so that an error in the arguments or a setting is reported before the slow
        # imports.
        with needs_packages("service"):
            from hostbench.service.settings import read_settings
        settings = read_settings(arguments[0])
        with needs_packages("service"):
            from hostbench.service.app import create_app
            from hostbench.web.log import configure_logging
            from hostbench.web.server import serve

        configure_logging()
        app = create_app(arguments[0], settings)
        # Programs and peers started from here need not know the key.
        os.environ.pop("HOSTBENCH_SERVICE_KEY", None)
        serve(
            app,
            settings.listen,
            app.state.service.end,
            GRACE_S,
            ssl_certfile=settings.tls_cert_file,
            ssl_keyfile=settings.tls_key_file,
        )
    except HostbenchError as error:
        sys.stderr.write(f"hostbench.service: {error.message}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
