"""Which host has the far ends of `hostbench run`: options, else the environment."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hostbench.errors import ResourceError, UsageError, shown
from hostbench.secret import read_secret, secret
from hostbench.web.listen import is_loopback

UNIX = "unix:"
OPTION, KEY_OPTION = "--far-host", "--far-key-file"
VARIABLE, KEY_VARIABLE, CA_VARIABLE = (
    "HOSTBENCH_FAR_HOST",
    "HOSTBENCH_FAR_KEY",
    "HOSTBENCH_FAR_CA_FILE",
)


@dataclass(frozen=True)
class FarOptions:
    """The net service of the far host and how it is reached. `is_asked_for`: by an option, so that
    there must be a use for it."""

    url: str
    key: str = field(repr=False)
    ca_file: Path | None
    is_asked_for: bool


def far_options(url: str | None, key_file: Path | None, ca_file: Path | None) -> FarOptions | None:
    """What the options say, else HOSTBENCH_FAR_HOST, HOSTBENCH_FAR_KEY_FILE and
    HOSTBENCH_FAR_CA_FILE; None: there is no far host. Raises UsageError or ResourceError."""
    named = url or os.environ.get(VARIABLE)
    if not named:
        if key_file is not None or ca_file is not None:
            raise UsageError(
                f"{KEY_OPTION} and --far-ca say how {OPTION} is reached; give that too"
            )
        return None
    _check_url(named, OPTION if url else VARIABLE)
    key = read_secret(key_file, KEY_OPTION) if key_file else secret(KEY_VARIABLE)
    if key is None:
        raise UsageError(
            f"nobody says the key of {named}; name a file with it by {KEY_OPTION} or "
            f"{KEY_VARIABLE}_FILE: secrets/service_key of where make env was run"
        )
    if not (key.isascii() and key.isprintable()):
        raise ResourceError(f"the key of {named} has characters that no key has; name its own file")
    in_environment = os.environ.get(CA_VARIABLE)
    ca = ca_file or (Path(in_environment) if in_environment else None)
    return FarOptions(named, key, ca, is_asked_for=url is not None)


def _check_url(url: str, named_by: str) -> None:
    if url.startswith(UNIX) and len(url) > len(UNIX):
        return
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    odd = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or odd:
        raise UsageError(
            f"{named_by} {shown(url)} is not the address of a net service; write it like "
            "https://node-b.example.org:8004"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            f"{named_by} {shown(url)} would send the key unencrypted over the network; use https, "
            "and give that service a certificate (docs/operations.md)"
        )
