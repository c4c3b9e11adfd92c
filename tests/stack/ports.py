"""Ports for servers of tests, which no process takes between the choice and the start."""

import itertools
import os
import random
import socket

# Below the ports that Linux gives to outgoing connections and to callers that want any (32768 and
# above): a server may start long after its port was chosen. Each lane has ports of its own.
_FIRST, _EACH, _LANES = 20000, 1000, 12
_lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _LANES
_start = random.randrange(_EACH)  # two runs of the tests beside each other
_next = itertools.count(_start)


def free_port() -> int:
    """A port without a listener, which this lane has not given out lately."""
    for number in itertools.islice(_next, _EACH):
        port = _FIRST + _lane * _EACH + number % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError("no port is free")
