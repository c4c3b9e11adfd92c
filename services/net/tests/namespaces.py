"""Network namespaces joined by veth pairs, for tests that may make them.

A namespace belongs to a process that sleeps in it and ends with the test: nothing is mounted, no
name is left behind, and devices and queues go with it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

LIFETIME_S = 300
# Until the refusal of that port arrives: neighbours on a fresh link first have to find each other.
KNOCK = """
import socket, sys
for _ in range(20):
    try:
        socket.create_connection((sys.argv[1], 9), timeout=0.5)
    except ConnectionRefusedError:
        sys.exit(0)
    except OSError:
        pass
sys.exit("no way to " + sys.argv[1])
"""


@dataclass(frozen=True)
class Namespace:
    """A network namespace with its loopback up."""

    pid: int

    @property
    def path(self) -> str:
        """For setns()."""
        return f"/proc/{self.pid}/ns/net"

    def call(self, *command: str) -> str:
        """What a command printed that ran in here; it must succeed."""
        inside = ["nsenter", f"--net={self.path}", *command]
        return subprocess.run(inside, check=True, capture_output=True, text=True).stdout

    def address(self, device: str, *addresses: str) -> None:
        """Give a device addresses ("10.0.0.1/24") and set it up."""
        for address in addresses:
            family = ["-6", "addr", "add", address, "dev", device, "nodad"]
            if ":" not in address:
                family = ["addr", "add", address, "dev", device]
            self.call("ip", *family)
        self.call("ip", "link", "set", device, "up")

    def await_way(self, *addresses: str) -> None:
        """Back when these addresses, without a listener at port 9, answer."""
        for address in addresses:
            self.call(sys.executable, "-c", KNOCK, address)


def why_not() -> str | None:
    """What keeps this process from making network namespaces; None: nothing."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    tried = subprocess.run(
        ["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, text=True
    )
    return None if tried.returncode == 0 else f"no network namespaces here: {tried.stderr.strip()}"


@contextmanager
def namespace(lifetime_s: int = LIFETIME_S) -> Iterator[Namespace]:
    """A namespace that lasts as long as the block, and never longer than its lifetime."""
    command = [
        "unshare",
        "--net",
        "sh",
        "-c",
        f"ip link set lo up && echo && exec sleep {lifetime_s}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"\n"
            yield Namespace(holder.pid)
        finally:
            holder.kill()


def join(one: Namespace, device: str, other: Namespace, far_device: str, mtu: int = 1500) -> None:
    """A veth pair between two namespaces, still without addresses and down."""
    pair = ["ip", "link", "add", device, "mtu", str(mtu), "type", "veth", "peer", "name"]
    one.call(*pair, far_device, "mtu", str(mtu), "netns", str(other.pid))


@contextmanager
def pair(mtu: int = 1500, lifetime_s: int = LIFETIME_S) -> Iterator[tuple[Namespace, Namespace]]:
    """10.9.0.1 and fd09::1 in the one, 10.9.0.2 and fd09::2 in the other, over a veth pair."""
    with ExitStack() as stack:
        near, far = (stack.enter_context(namespace(lifetime_s)) for _ in range(2))
        join(near, "near0", far, "far0", mtu)
        near.address("near0", "10.9.0.1/24", "fd09::1/64")
        far.address("far0", "10.9.0.2/24", "fd09::2/64")
        near.await_way("10.9.0.2", "fd09::2")
        yield near, far


@contextmanager
def chain(lifetime_s: int = LIFETIME_S) -> Iterator[tuple[Namespace, Namespace, Namespace]]:
    """10.9.1.1 reaches 10.9.2.1 through a middle namespace that forwards, by its device out0."""
    with ExitStack() as stack:
        near, middle, far = (stack.enter_context(namespace(lifetime_s)) for _ in range(3))
        join(near, "near0", middle, "in0")
        join(middle, "out0", far, "far0")
        near.address("near0", "10.9.1.1/24")
        middle.address("in0", "10.9.1.2/24")
        middle.address("out0", "10.9.2.2/24")
        far.address("far0", "10.9.2.1/24")
        middle.call("sysctl", "-qw", "net.ipv4.ip_forward=1")
        near.call("ip", "route", "add", "default", "via", "10.9.1.2")
        far.call("ip", "route", "add", "default", "via", "10.9.2.2")
        near.await_way("10.9.2.1")
        yield near, middle, far
