"""Renewals of a lease as they are written by hand: over each way to a service, and what keeps one
from being granted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from hostbench.base.tls import trusting
from hostbench.remote.renewal import RENEWAL_ERRORS, Renewals
from tests.client.canned_server import certificate
from tests.patience import PATIENCE_S
from tests.service.streams import running
from tests.stack.service_process import SERVICE_KEY, ServiceProcess

GRANTED = b"HTTP/1.1 204 No Content\r\n\r\n"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize("way", ["plain", "tls", "unix"])
def test_a_real_service_renews_what_runs(tmp_path: Path, way: str) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1") if way == "tls" else None
    socket = str(tmp_path / "cpu.sock")
    listen = f"unix:{socket}" if way == "unix" else None
    with (
        ServiceProcess(tmp_path / "one", certificate=made, listen=listen) as service,
        running(service, "t1"),
    ):

        async def renew() -> list[bool]:
            url = httpx.URL("http://service" if way == "unix" else service.url)
            tls = trusting(made.certificate) if made else None
            path = socket if way == "unix" else None
            keys = iter((SERVICE_KEY, SERVICE_KEY, SERVICE_KEY, "another", SERVICE_KEY))
            line = Renewals(url, path, lambda: next(keys), tls)
            with contextlib.closing(line):
                return [await line.renew(trial) for trial in ("t1", "t1", "t2", "t1", "t1")]

        found = asyncio.run(asyncio.wait_for(renew(), PATIENCE_S))
        assert found == [True, True, False, False, True], "t2 does not run; a key is wrong"


@contextlib.asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[tuple[Renewals, list[int]]]:
    """Renewals at a server that answers so, and the connections it had: requests on each."""
    requests: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(requests)
        requests.append(0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                await reader.readuntil(b"\r\n\r\n")
                requests[number] += 1
                await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        line = Renewals(httpx.URL(f"http://127.0.0.1:{port}"), None, lambda: "key", None)
        with contextlib.closing(line):
            yield line, requests


def test_one_connection_serves_them_all() -> None:
    async def run() -> None:
        async def grant(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(GRANTED)

        async with served(grant) as (line, requests):
            assert [await line.renew("t1") for _ in range(3)] == [True] * 3
            assert requests == [3]

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_a_connection_that_was_closed_is_not_used_again() -> None:
    async def run() -> None:
        async def grant_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(GRANTED)
            writer.close()

        async with served(grant_once) as (line, requests):
            for _ in range(3):
                assert await line.renew("t1")
                await asyncio.sleep(0.1)  # the end of the stream is on its way
            assert requests == [1, 1, 1]

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_one_that_waits_holds_up_no_other() -> None:
    async def run() -> None:
        hears = asyncio.Event()

        async def grant_the_second(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if hears.is_set():
                writer.write(GRANTED)
            hears.set()

        async with served(grant_the_second) as (line, _):
            first = asyncio.create_task(line.renew("t1"))
            await hears.wait()
            assert await line.renew("t1") and not first.done()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert await line.renew("t1")

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 20", b"x" * (1 << 17)])
def test_what_is_no_answer_is_an_error_of_renewals(said: bytes) -> None:
    async def run() -> None:
        async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(said)
            writer.close()

        async with served(say) as (line, _):
            with pytest.raises(RENEWAL_ERRORS):
                await line.renew("t1")
        with pytest.raises(RENEWAL_ERRORS):  # nobody is there
            await line.renew("t1")

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
