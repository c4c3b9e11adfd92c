"""The address at which a server listens."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import UsageError, shown

PORT_MOST = 65535
# If a server listens on every address, the one that callers use is unknown.
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104


@dataclass(frozen=True)
class Listen:
    """An address and a port, or the path of a Unix socket, at which a server listens."""

    address: str = ""
    port: int = 0
    path: Path | None = None

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path is not None else f"{self.address}:{self.port}"

    @property
    def url(self) -> str | None:
        """The URL for callers on this host, or None when it is unknown."""
        if self.path is not None:
            return f"unix:{self.path}"
        if self.address in _EVERY_ADDRESS or self.port == 0:
            return None
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{address}:{self.port}"

    def secured_url(self, tls: bool) -> str | None:
        """Return the same for a server that uses TLS."""
        url = self.url
        return url if url is None or not tls else url.replace("http://", "https://", 1)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.path is not None or is_loopback(self.address)


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_listen(text: str) -> Listen:
    """Return the address in `127.0.0.1:8001`, `[::1]:8001` or `unix:/run/hostbench/cpu.sock`. Raise
    UsageError."""
    if text.startswith("unix:/"):
        return Listen(path=Path(text.removeprefix("unix:")))
    address, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > PORT_MOST:
        raise UsageError(
            f"HOSTBENCH_LISTEN {shown(text)} is not an address; "
            "give one such as 127.0.0.1:8000 or unix:/run/hostbench/server.sock"
        )
    return Listen(address=address.strip("[]"), port=int(port))
