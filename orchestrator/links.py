"""Connections to the services of the hosts."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx

from hostbench.remote import RemoteService, ServiceLost


class Links:
    """Opens them, with the key they all take."""

    def __init__(self, key: str, ca: Path | None) -> None:
        """`ca`: who signed the services' certificates; None: whom the system trusts."""
        self._key = key
        self._ca = ca

    @contextlib.contextmanager
    def open(self, url: str) -> Iterator[RemoteService]:
        """A service by the URL it registered with. Raises ServiceLost."""
        try:
            service = RemoteService(url, self._key, self._ca)
        except httpx.InvalidURL as error:
            raise ServiceLost(f"service {url} has no address that can be used: {error}") from None
        with contextlib.closing(service):
            yield service
