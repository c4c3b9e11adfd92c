"""Hosts of a small network on this machine: namespaces around a switch, with a cable to each.

They have no names anywhere: a namespace ends with its last process, and takes its cable along.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

CHECKOUT = Path(__file__).parents[2]
TOOLS = ("ip", "nsenter", "unshare")
# Their parent may be killed.
LIFETIME_S = 3600
# /sys shows the interfaces of the namespace that mounted it; the control groups lie below it.
HOST_SCRIPT = f"""
set -e
ip link set lo up
mount -t sysfs sysfs /sys
mount -t cgroup2 none /sys/fs/cgroup || true
echo ready
exec sleep {LIFETIME_S}
"""


def need_namespaces() -> None:
    """Skip a test that cannot make any here."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    tried = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"network namespaces cannot be made here: {tried.stderr.strip()}")


class Namespace:
    """A network namespace and a mount namespace, for as long as a process sleeps in them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", HOST_SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        if self._process.stdout.readline() != "ready\n":
            raise OSError(f"no namespace: {self._process.stderr.read()}")

    @property
    def pid(self) -> int:
        """Of the process that keeps it."""
        return self._process.pid

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before a command that is to run there."""
        return ("nsenter", f"--target={self.pid}", "--net", "--mount", f"--wd={CHECKOUT}", "--")

    def run(self, *command: str) -> str:
        """The output of a command there."""
        return _run(*self.prefix, *command)

    def close(self) -> None:
        """End it; what else runs there keeps it alive."""
        self._process.kill()
        self._process.communicate()


class Lan:
    """A switch, this process' own end of a cable to it, and any number of hosts."""

    def __init__(self) -> None:
        # RFC 2544 sets these addresses aside for such networks.
        self._network = f"198.18.{os.getpid() % 250}"
        self._port = f"hbt{os.getpid() % 1_000_000}"
        self._stack = contextlib.ExitStack()
        self.switch = Namespace()
        self._stack.callback(self.switch.close)
        self._hosts = 0
        self.address = self._address(254)

    def __enter__(self) -> Self:
        try:
            self.switch.run("ip", "link", "add", "br0", "type", "bridge")
            self.switch.run("ip", "link", "set", "br0", "up")
            _run(
                *("ip", "link", "add", "name", self._port, "type", "veth"),
                *("peer", "name", "p254", "netns", str(self.switch.pid)),
            )
            self._stack.callback(_try, "ip", "link", "delete", self._port)
            _run("ip", "address", "add", f"{self.address}/24", "dev", self._port)
            _run("ip", "link", "set", self._port, "up")
            self._plug_in("p254")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def _address(self, number: int) -> str:
        return f"{self._network}.{number}"

    def host(self) -> "LanHost":
        """A new one, with the next address."""
        self._hosts += 1
        number = self._hosts
        namespace = Namespace()
        self._stack.callback(namespace.close)
        port = f"p{number}"
        self.switch.run(
            *("ip", "link", "add", "name", port, "type", "veth"),
            *("peer", "name", "eth0", "netns", str(namespace.pid)),
        )
        self._plug_in(port)
        namespace.run("ip", "address", "add", f"{self._address(number)}/24", "dev", "eth0")
        namespace.run("ip", "link", "set", "eth0", "up")
        return LanHost(self, namespace, self._address(number), port)

    def _plug_in(self, port: str) -> None:
        self.switch.run("ip", "link", "set", port, "master", "br0", "up")


class LanHost:
    """One host of a Lan."""

    def __init__(self, lan: Lan, namespace: Namespace, address: str, port: str) -> None:
        self.address = address
        self.namespace = namespace
        self._lan = lan
        self._port = port

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before a command that is to run there."""
        return self.namespace.prefix

    def unplug(self) -> None:
        """Nothing reaches it any more, without a notice to any end."""
        self._lan.switch.run("ip", "link", "set", self._port, "nomaster")

    def plug_in(self) -> None:
        """After `unplug`."""
        self._lan.switch.run("ip", "link", "set", self._port, "master", "br0")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def _try(*command: str) -> None:
    subprocess.run(command, capture_output=True)
