"""TLS of a server, and that keys never travel in clear beyond this machine."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from hostbench.errors import ResourceError, UsageError, shown
from hostbench.web.listen import Listen, is_loopback


@dataclass(frozen=True)
class Tls:
    """The files of the certificate and of its key."""

    certificate: Path
    key: Path


def readable_file(name: str) -> Path | None:
    """The file that the variable `name` names; None: it is not set. Raises ResourceError."""
    text = os.environ.get(name)
    if not text:
        return None
    path = Path(text)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ResourceError(f"{name} {path} is not a file that can be read; make env makes it")
    return path


def server_tls() -> Tls | None:
    """HOSTBENCH_TLS_CERT_FILE and HOSTBENCH_TLS_KEY_FILE; None: neither is set. Raises UsageError
    or ResourceError."""
    certificate = readable_file("HOSTBENCH_TLS_CERT_FILE")
    key = readable_file("HOSTBENCH_TLS_KEY_FILE")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "HOSTBENCH_TLS_CERT_FILE" if certificate is None else "HOSTBENCH_TLS_KEY_FILE"
        raise UsageError(f"{missing} is not set; TLS needs the certificate and its key")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise ResourceError(
            f"{certificate} and {key} are not a certificate and its key: {error}; "
            "make env makes a pair"
        ) from None
    return Tls(certificate, key)


def check_exposure(listen: Listen, tls: Tls | None, published: str | None = None) -> None:
    """Raises UsageError where keys would travel in clear. `published`: HOSTBENCH_BIND, of a server
    in a container that others reach by that address alone."""
    name = "HOSTBENCH_BIND" if published else "HOSTBENCH_LISTEN"
    exposed = published or listen.address
    loopback = is_loopback(published) if published else listen.loopback
    if tls is None and not loopback:
        raise UsageError(
            f"{name} {shown(exposed)} is reachable from other machines, where keys would travel in "
            "clear; set HOSTBENCH_TLS_CERT_FILE and HOSTBENCH_TLS_KEY_FILE (make env makes both), "
            "or use 127.0.0.1"
        )
