"""Renewals of leases, the only calls of a service that come again and again during a trial.

Through httpx each took 1.4 ms of a CPU, a third of what an orchestrator did beside a trial; so they
are written by hand, which takes 0.3 ms.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable

import httpx

GRANTED = b"204"
# What keeps a renewal from being granted. TimeoutError is an OSError.
RENEWAL_ERRORS = (OSError, EOFError, asyncio.LimitOverrunError)
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Renewals:
    """Those of one service, on one event loop. Connections are kept."""

    def __init__(
        self, url: httpx.URL, path: str | None, key: Callable[[], str], tls: ssl.SSLContext | None
    ) -> None:
        """`path`: of a Unix socket; None: there is none. `key` says what it is at each call. `tls`:
        for https."""
        self._url = url
        self._path = path
        self._key = key
        self._tls = tls
        self._idle: list[Connection] = []

    async def renew(self, trial_id: str) -> bool:
        """Whether the lease was renewed. Raises one of RENEWAL_ERRORS, or what `key` raises."""
        request = (
            f"PUT {self._url.path.rstrip('/')}/trials/{trial_id}/lease HTTP/1.1\r\n"
            f"Host: {self._url.netloc.decode()}\r\n"
            f"Authorization: Bearer {self._key()}\r\n"
            "Content-Length: 0\r\n\r\n"
        )
        async with self._connection() as (reader, writer):
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            granted = head.split(b" ", 2)[1:2] == [GRANTED]
            if not granted:
                writer.close()  # a body follows, which nobody reads
        return granted

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """One that no other renewal uses; kept, unless it fails or is closed."""
        while self._idle and self._idle[-1][0].at_eof():
            self._idle.pop()[1].close()
        reader, writer = self._idle.pop() if self._idle else await self._connect()
        try:
            yield reader, writer
        except BaseException:
            writer.transport.abort()
            raise
        if not writer.is_closing():
            self._idle.append((reader, writer))

    async def _connect(self) -> Connection:
        if self._path is not None:
            return await asyncio.open_unix_connection(self._path)
        port = self._url.port or (443 if self._tls else 80)
        return await asyncio.open_connection(self._url.raw_host.decode(), port, ssl=self._tls)

    def close(self) -> None:
        """Close the connections; nothing may be under way."""
        for _, writer in self._idle:
            writer.close()
