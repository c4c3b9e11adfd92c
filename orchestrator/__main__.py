"""`python -m orchestrator`: one orchestrator."""

import sys

from hostbench.base.errors import HostbenchError
from hostbench.base.packages import needs_packages

# How long an answer in progress may still take; jobs have a limit of their own.
GRACE_S = 2


def main() -> int:
    """Serve until SIGTERM; return the exit code."""
    try:
        # Imported here, so that a wrong setting is reported before the slow imports.
        with needs_packages("orchestrator"):
            from orchestrator.settings import Settings
        settings = Settings.from_environment()
        with needs_packages("orchestrator"):
            from hostbench.web.log import configure_logging
            from hostbench.web.server import serve
            from orchestrator.app import create_app

        configure_logging()
        app = create_app(settings)
        serve(
            app,
            settings.listen,
            app.state.core.stop,
            GRACE_S,
            ssl_certfile=settings.tls_cert_file,
            ssl_keyfile=settings.tls_key_file,
        )
    except HostbenchError as error:
        sys.stderr.write(f"orchestrator: {error.message}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
