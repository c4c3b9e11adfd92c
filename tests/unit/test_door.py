"""Connections that keep a server waiting: a small application behind a door, and real sockets."""

import asyncio
import contextlib
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from hostbench.web.door import Door, DoorSocket

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n"
NEVER_S = 3600.0


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body; /endless does so without end, /long never."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    if scope["path"] == "/long":
        assert (await receive())["type"] == "http.disconnect"
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"] == "/endless":
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextlib.asynccontextmanager
async def served(door: Door) -> AsyncIterator[Callable[[], Awaitable[tuple[Reader, Writer]]]]:
    """A function that connects to the application behind `door`."""
    config = uvicorn.Config(application, log_config=None)
    config.load()
    protocol, state = door.protocol(), ServerState()
    with DoorSocket() as bound:
        bound.door = door
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(config, state, {}), sock=bound)
        connected: list[Writer] = []

        async def connect() -> tuple[Reader, Writer]:
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            connected.append(writer)
            return reader, writer

        yield connect
        for writer in connected:
            writer.close()
        server.close()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


async def says(reader: Reader, writer: Writer, request: bytes) -> bytes:
    """The status line of the answer to a request, empty: the connection was ended."""
    writer.write(request)
    try:
        line = await reader.readline()
        while (await reader.readline()).strip():
            pass
        if line:
            # One chunk and the end of the chunks.
            await reader.readuntil(b"0\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        return b""
    return line.strip()


async def is_ended(reader: Reader) -> bool:
    """Whether a connection that was not answered has come to its end; waits for it."""
    try:
        return await reader.read(1) == b""
    except ConnectionError:
        return True


def test_a_request_that_does_not_end() -> None:
    async def run() -> None:
        async with served(Door(request_s=0.3, reading_s=NEVER_S)) as connect:
            parts = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost:", POST, POST + b"abc")
            for part in parts:
                reader, writer = await connect()
                writer.write(part)
                assert await is_ended(reader), part
            # The second request of a connection, too, and one that comes byte by byte.
            reader, writer = await connect()
            assert await says(reader, writer, GET) == b"HTTP/1.1 200 OK"
            assert await says(reader, writer, POST + b"abcd") == b"HTTP/1.1 200 OK"
            ended = asyncio.create_task(is_ended(reader))
            for byte in GET * 100:
                if ended.done():
                    break
                writer.write(bytes([byte if byte not in b"\r\n" else ord("x")]))
                await asyncio.sleep(0.02)
            assert await ended

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_is_at_work_or_at_rest_may_take_its_time() -> None:
    async def run() -> None:
        async with served(Door(request_s=0.1, reading_s=0.1)) as connect:
            resting, working = await connect(), await connect()
            assert await says(*resting, GET) == b"HTTP/1.1 200 OK"
            working[1].write(GET.replace(b"/ ", b"/long "))
            await asyncio.sleep(0.5)
            assert await says(*resting, GET) == b"HTTP/1.1 200 OK"
            assert not working[0].at_eof()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_an_answer_that_is_not_read() -> None:
    async def run() -> None:
        door = Door(request_s=NEVER_S, reading_s=0.3)
        async with served(door) as connect:
            _, writer = await connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(GET.replace(b"/ ", b"/endless "))
            await asyncio.sleep(0.1)
            while len(door) == 1:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_one_that_was_silent_for_longest_makes_room() -> None:
    async def run() -> None:
        async with served(Door(most=8, of_address_most=6, request_s=NEVER_S)) as connect:
            known = await connect()
            assert await says(*known, GET) == b"HTTP/1.1 200 OK"
            silent = [await connect() for _ in range(5)]
            newest = await connect()
            assert await says(*newest, GET) == b"HTTP/1.1 200 OK"
            assert await is_ended(silent[0][0])
            # One that has called before is worth more than strangers.
            assert await says(*known, GET) == b"HTTP/1.1 200 OK"
            # Where all are at work, none makes room.
            for _, writer in (known, newest, *silent[1:]):
                writer.write(GET.replace(b"/ ", b"/long "))
            await asyncio.sleep(0.2)
            assert await is_ended((await connect())[0])
            known[1].close()
            await asyncio.sleep(0.2)
            assert await says(*await connect(), GET) == b"HTTP/1.1 200 OK"

    asyncio.run(asyncio.wait_for(run(), 60))


def test_who_has_begun_a_request_is_heard_before_strangers_are() -> None:
    async def run() -> None:
        async with served(Door(most=100, of_address_most=6, request_s=NEVER_S)) as connect:
            # As a TLS handshake: something has come, and the caller is waited for.
            reader, writer = await connect()
            writer.write(GET[:5])
            await asyncio.sleep(0.1)
            strangers = [await connect() for _ in range(20)]
            assert await says(reader, writer, GET[5:]) == b"HTTP/1.1 200 OK"
            assert await is_ended(strangers[0][0])

    asyncio.run(asyncio.wait_for(run(), 60))
