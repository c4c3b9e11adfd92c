"""The address of an orchestrator: http or https, host, port, and optionally a path before its
calls."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from hostbench.base.errors import UsageError, shown
from hostbench.base.listen import is_loopback


@dataclass(frozen=True)
class Address:
    """A base URL without a slash at its end."""

    url: str
    host: str
    encrypted: bool

    @classmethod
    def parsed(cls, text: str, named_by: str) -> "Address":
        """Return the address in `text`. Raise UsageError for anything else, and for an address to
        which the key would travel unencrypted."""
        text = text.strip()
        try:
            parts = urlsplit(text)
            host, _port = parts.hostname, parts.port
            _look_up_able(text)
        except (ValueError, httpx.InvalidURL):
            raise _not_an_address(text, named_by) from None
        if parts.scheme not in ("http", "https") or not host:
            raise _not_an_address(text, named_by)
        if parts.query or parts.fragment or "@" in parts.netloc or any(map(str.isspace, text)):
            raise _not_an_address(text, named_by)
        if parts.scheme == "http" and not is_loopback(host):
            raise UsageError(
                f"{named_by} {shown(text)} would send the key unencrypted over the network; use "
                f"https, or a tunnel: ssh -L 8000:127.0.0.1:{parts.port or 80} {host}"
            )
        return cls(text.rstrip("/"), host, parts.scheme == "https")

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, as far as the address shows."""
        return is_loopback(self.host)


def _look_up_able(text: str) -> None:
    """Raise InvalidURL or ValueError for a name that no resolver accepts."""
    httpx.URL(text).host.encode("idna")


def _not_an_address(text: str, named_by: str) -> UsageError:
    return UsageError(
        f"{named_by} {shown(text)} is not the address of an orchestrator; "
        "write it like https://bench.example.org:8000 or http://127.0.0.1:8000"
    )
