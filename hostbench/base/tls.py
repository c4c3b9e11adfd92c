"""Trusted certificate authorities: the system's, or those in one file (`make env` makes one)."""

import ssl
from pathlib import Path

from hostbench.base.errors import ResourceError

# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python does not name.
_NO_CHECK_TIME = 0x200000


def trusting(ca_file: Path | None, *, pinned: bool = False) -> ssl.SSLContext:
    """Return a context for clients; None: the system's authorities. Raise ResourceError when the
    file cannot be read or holds none.

    `pinned`: the file holds the server's own certificate, made for this purpose. So neither its
    name nor its time matters, and clocks may differ.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if pinned:
            context.check_hostname = False
            context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
        return context
    except ssl.SSLError:
        reason = "there is no certificate in it"
    except OSError as error:
        reason = error.strerror or str(error)
    raise ResourceError(
        f"cannot use the certificates of {ca_file}: {reason}; name a readable file of "
        "certificates (PEM), such as secrets/ca.pem of make env"
    )
