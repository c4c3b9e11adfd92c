"""Trusted certificate authorities: the system's, or those in one file (`make env` makes one)."""

import ssl
from pathlib import Path

from hostbench.base.errors import ResourceError


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context for clients; None: the system's authorities. Raise ResourceError when the
    file cannot be read or holds none."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        reason = "there is no certificate in it"
    except OSError as error:
        reason = error.strerror or str(error)
    raise ResourceError(
        f"cannot use the certificates of {ca_file}: {reason}; name a readable file of "
        "certificates (PEM), such as secrets/ca.pem of make env"
    )
