"""The host with the far ends of `hostbench run`: options, else the environment."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from hostbench.base.config import EnvironmentSettings, Option, read_secret
from hostbench.base.errors import UsageError
from hostbench.base.listen import is_loopback

UNIX = "unix:"
OPTION, KEY_OPTION = "--far-host", "--far-key-file"
VARIABLE = "HOSTBENCH_FAR_HOST"


def _service_url(url: str) -> str:
    if url.startswith(UNIX) and len(url) > len(UNIX):
        return url
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    odd = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or odd:
        raise ValueError(
            "is not the address of a net service; write it like https://node-b.example.org:8004"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(
            "would send the key unencrypted over the network; use https, and give that service a "
            "certificate (docs/operations.md)"
        )
    return url


def _printable(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("has characters that no key has; name the file of the far host's key")
    return key


class _FarAddress(EnvironmentSettings):
    far_host: Annotated[str, AfterValidator(_service_url)] | None = None


class _FarAccess(EnvironmentSettings):
    """Read only if there is a far host: without one, no key file is required."""

    far_key: Annotated[SecretStr, AfterValidator(_printable)] | None = None
    far_ca_file: Path | None = None


@dataclass(frozen=True)
class FarOptions:
    """The net service of the far host and how to reach it. `required`: an option named it, so a
    case must use it. `pinned`: `ca_file` is its own certificate, see hostbench.base.tls."""

    url: str
    key: str = field(repr=False)
    ca_file: Path | None
    required: bool
    pinned: bool = False


def far_options(url: str | None, key_file: Path | None, ca_file: Path | None) -> FarOptions | None:
    """Return the far host from the options, else from HOSTBENCH_FAR_HOST, HOSTBENCH_FAR_KEY_FILE
    and HOSTBENCH_FAR_CA_FILE; None: there is none. Raise UsageError or ResourceError."""
    far_host = _FarAddress.from_environment(far_host=Option(OPTION, url)).far_host
    if far_host is None:
        if key_file is not None or ca_file is not None:
            raise UsageError(f"{KEY_OPTION} and --far-ca belong to {OPTION}; give that option, too")
        return None
    key = read_secret(key_file, KEY_OPTION) if key_file is not None else None
    settings = _FarAccess.from_environment(
        far_key=Option(KEY_OPTION, key), far_ca_file=Option("--far-ca", ca_file)
    )
    # An empty key file is no reason to send another host's key.
    if not settings.far_key or (key_file is not None and key is None):
        raise UsageError(
            f"the key of the far host {far_host} is missing: set {KEY_OPTION} or "
            "HOSTBENCH_FAR_KEY_FILE (its line of secrets/host_keys where `make farhost` ran)"
        )
    return FarOptions(
        far_host,
        settings.far_key.get_secret_value(),
        settings.far_ca_file,
        required=url is not None,
    )
