"""The far end of a pair: the net service of its node, for as long as the near end is there."""

import contextlib
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from hostbench.base.config import Option
from hostbench.base.errors import HostbenchError
from hostbench.base.interrupt import Interrupt
from hostbench.base.listen import Listen
from hostbench.base.packages import needs_packages
from hostbench.fleet.pair.end import End
from hostbench.fleet.pair.meeting import Meeting

SUBSYSTEM = "net"
# The longest grace of a session, a peer's, and a little more.
GRACE_S = 15
END_S = 0.1
# These would make it a service of a stack.
_NOT_OURS = ("HOSTBENCH_ORCHESTRATOR_URL", "HOSTBENCH_SERVICE_URL", "HOSTBENCH_SERVICE_KEY_FILE")


def far_end(end: End, interrupt: Interrupt, say: Callable[[str], None]) -> None:
    """Hold the node and serve sessions until the near end ends. Raise HostbenchError."""
    with end.connected(interrupt) as (meeting, _lock), tempfile.TemporaryDirectory() as directory:
        for name in _NOT_OURS:
            os.environ.pop(name, None)
        _serve(end, meeting, interrupt, Path(directory), say)


def _serve(
    end: End, meeting: Meeting, interrupt: Interrupt, directory: Path, say: Callable[[str], None]
) -> None:
    with needs_packages("service"):
        from hostbench.service.app import create_app
        from hostbench.service.settings import Settings
        from hostbench.web.log import configure_logging
        from hostbench.web.server import serve

    configure_logging()
    listen = Listen(meeting.own_address, _free_port(meeting.own_address))
    settings = Settings.from_environment(
        subsystem=Option("the subsystem", SUBSYSTEM),
        listen=Option("the address", str(listen)),
        service_key=Option("the campaign's key", end.secret.key()),
        tls_cert_file=Option("the certificate", end.secret.certificate),
        tls_key_file=Option("the certificate's key", end.secret.private_key),
        # This process has the host's lock for all sessions; among themselves they take this one.
        lock=Option("the lock of sessions", directory / "sessions.lock"),
    )
    app = create_app(SUBSYSTEM, settings)
    served = threading.Event()

    def stay() -> None:
        try:
            _announce(meeting, settings.url, listen, interrupt)
            meeting.heard(interrupt)  # until the near end is done or gone
        except HostbenchError as error:
            say(error.message)
        finally:
            # serve() handles the signal by ending all sessions, then itself; at first it may not
            # yet.
            while not served.wait(END_S):
                os.kill(os.getpid(), signal.SIGTERM)

    say(f"{end.node} is the far end of {end.pair.near}")
    threading.Thread(target=stay, name="near end", daemon=True).start()
    serve(
        app, listen, app.state.service.end, GRACE_S,
        ssl_certfile=settings.tls_cert_file, ssl_keyfile=settings.tls_key_file,
    )  # fmt: skip
    served.set()


def _announce(meeting: Meeting, url: str | None, listen: Listen, interrupt: Interrupt) -> None:
    """Tell the near end where the service is, as soon as it answers."""
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection((listen.address, listen.port)).close()
            break
        interrupt.wait(0.05)
    meeting.say(url=url)


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as one:
        one.bind((address, 0))
        port: int = one.getsockname()[1]
        return port
