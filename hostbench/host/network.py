"""The network interfaces of this host, and the user's rating of the path to other hosts, for the
inventory. What cannot be read is None, never an error."""

import re
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.files import read_number, read_text
from hostbench.base.rating import Rating
from hostbench.model.host import Interface, Network, Virtualisation

BANDWIDTH = Rating(
    variable="HOSTBENCH_NET_BANDWIDTH",
    what="a bandwidth",
    unit="byte/s",
    most=1e15,
    example="1.17e9, the payload of 10 Gbit/s",
)
# A host of containers has hundreds of interfaces, and each trial uses one.
INTERFACES_MOST = 64
# include/uapi/linux/if_arp.h
_TYPES = {1: "ethernet", 32: "infiniband", 772: "loopback"}
# Buses that a hypervisor makes, by the name of the device's subsystem.
_PARAVIRTUAL = {"virtio": "virtio", "vmbus": "hyperv", "xen": "xen"}
# Kinds that a directory or a file of the interface shows; a driver need not name its kind.
_MARKS = {
    "bridge": "bridge",
    "bonding": "bond",
    "tun_flags": "tun",
    "phy80211": "wlan",
    "wireless": "wlan",
}
GUEST = "this is a virtual machine, and the speed that it sees may not be real"


@dataclass(frozen=True)
class _Link:
    """How fast the line is; see Interface."""

    bits_per_second: float | None = None
    source: str | None = None
    reason: str | None = None


def network(root: Path, virtualisation: Virtualisation) -> Network:
    """Return the interfaces of this process's network namespace, the physical ones first.

    Raise UsageError when HOSTBENCH_NET_BANDWIDTH makes no sense.
    """
    paths = [path for path in (root / "sys/class/net").glob("*") if (path / "ifindex").exists()]
    found = [_interface(path.name, path.resolve(), virtualisation) for path in paths]
    found.sort(key=lambda one: (not one.physical, one.kind == "veth", one.name))
    timestamps = read_number(root / "proc/sys/net/ipv4/tcp_timestamps")
    return Network(
        interfaces=tuple(found[:INTERFACES_MOST]),
        tcp_timestamps=None if timestamps is None else timestamps != 0,
        user_bytes_per_second=BANDWIDTH.value(),
    )


def _interface(name: str, path: Path, virtualisation: Virtualisation) -> Interface:
    bus = _bus(path)
    kind = _kind(path, bus)
    physical = bus is not None and bus not in _PARAVIRTUAL
    link = _link(name, path, kind, physical=physical, guest=virtualisation.is_guest)
    return Interface(
        name=name,
        kind=kind,
        physical=physical,
        driver=_target_name(path / "device/driver"),
        state=read_text(path / "operstate"),
        mtu_bytes=read_number(path / "mtu"),
        duplex=_duplex(path),
        receive_queues=len(list((path / "queues").glob("rx-*"))) or None,
        transmit_queues=len(list((path / "queues").glob("tx-*"))) or None,
        link_bits_per_second=link.bits_per_second,
        link_source=link.source,
        link_reason=link.reason,
    )


def _bus(path: Path) -> str | None:
    """Return the bus of the interface's device, or None if it has no device because software made
    it."""
    if not (path / "device").exists():
        return None
    return _target_name(path / "device/subsystem") or "unknown"


def _target_name(link: Path) -> str | None:
    return link.resolve().name if link.exists() else None


def _kind(path: Path, bus: str | None) -> str:
    if bus in _PARAVIRTUAL:
        return _PARAVIRTUAL[bus]
    found = re.search(r"^DEVTYPE=(\S+)", read_text(path / "uevent") or "", re.MULTILINE)
    if found:
        return found[1]
    marked = next((kind for mark, kind in _MARKS.items() if (path / mark).exists()), None)
    if marked is not None:
        return marked
    by_type = _TYPES.get(read_number(path / "type") or 0, "other")
    if bus is not None or by_type == "loopback":
        return by_type
    return "veth" if _is_veth(path) else "virtual"


def _is_veth(path: Path) -> bool:
    """Whether an interface is a veth: it names no kind, but it is linked with another interface
    that it does not lie on."""
    is_linked = read_number(path / "iflink") != read_number(path / "ifindex")
    return is_linked and not list(path.glob("lower_*"))


def _duplex(path: Path) -> str | None:
    found = read_text(path / "duplex")
    return None if found == "unknown" else found


def _link(name: str, path: Path, kind: str, *, physical: bool, guest: bool) -> _Link:
    if kind == "loopback":
        return _Link(reason=f"{name}: it is the loopback, which has no link")
    if kind == "veth":
        return _Link(reason=f"{name}: veth devices have no real speed")
    if not physical:
        return _Link(reason=f"{name}: it is {kind}, which has no link that is known")
    if kind == "wlan":
        return _Link(reason=f"{name}: it is a radio, whose speed changes all the time")
    speed = read_number(path / "speed")
    if speed is None or speed <= 0:
        return _Link(reason=f"{name}: its driver reports no speed, or it is down")
    if guest:
        return _Link(reason=f"{name}: {GUEST}")
    return _Link(speed * 1e6, f"{name}: {speed} Mbit/s (/sys/class/net/{name}/speed)")
