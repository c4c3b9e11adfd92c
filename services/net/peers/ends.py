"""The two ends of a peer: where its server is, and how it gets there."""

import contextlib
import dataclasses
import socket

from hostbench.model.trial import Beside
from hostbench.plan.workloads import FAR_HOST
from hostbench.programs.peer import Command, on_cpus
from services.net.peers.case import Case

TRIES = 20
NO_FAR_END = "the far host has no server of it: the trial has no session for a peer"


def lacks_far_end(case: Case, beside: Beside) -> str | None:
    """Return why a tool cannot reach a server, or None: it has a far host's server, or starts its
    own."""
    return NO_FAR_END if case.target == FAR_HOST and beside.far is None else None


def floats(beside: Beside) -> tuple[str, ...]:
    """Return how a tool differs whose server is placed by the far host's kernel, because it is
    unknown where our far end ran (Survey.differs)."""
    if beside.far is None or beside.far_cpus:
        return ()
    return ("a server on any CPU of the far host; ours on CPUs of its own",)


def far_end(case: Case, beside: Beside) -> tuple[str, int]:
    """Return address and port of the server: the session's, or a free port of the loopback."""
    if beside.far is not None:
        return beside.far.address, beside.far.port
    return case.loopback_address, free_port(case.loopback_address)


def with_server(client: Command, server: Command, beside: Beside) -> Command:
    """Return `client` with its own server, on the CPUs that the threads of our far end used in
    turn. The caller takes care of a far host's server."""
    if beside.far is not None:
        return client
    if beside.far_cpus:
        pinned = on_cpus(beside.far_cpus[: beside.threads], *server.arguments)
        server = dataclasses.replace(server, arguments=pinned)
    return dataclasses.replace(client, server=server)


def free_port(address: str) -> int:
    """Return a port that is free for both TCP and UDP: iperf3 uses both."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(TRIES):
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            stream.bind((address, 0))
            port: int = stream.getsockname()[1]
            with (
                socket.socket(family, socket.SOCK_DGRAM) as datagrams,
                contextlib.suppress(OSError),
            ):
                datagrams.bind((address, port))
                return port
    raise OSError(f"no port of {address} is free for both TCP and UDP")
