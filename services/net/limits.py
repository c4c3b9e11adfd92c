"""Theoretical limits of the net workloads: what the user knows the path to carry, else what the
line of a physical interface does, less the headers.

The loopback has no limit, and what an interface made by software says of its speed is none. A round
trip is a time, and connections a second have no limit that is known.
"""

import ipaddress
import math
from dataclasses import dataclass

from hostbench.hostnetwork import BANDWIDTH
from hostbench.models.events import EndEvent, StartEvent
from hostbench.models.host import HostInventory, Interface, Network
from hostbench.models.limit import NAIVE_REASON, Factor, Limit
from services.net.goodput import FRAMING, MTU_LEAST, tcp_share, udp_share

METRIC, UNIT = "bytes_per_second", "byte/s"
TCP_STREAM, UDP_STREAM = "tcp_stream", "udp_stream"
NAIVE_STREAM = "naive_stream"
LOOPBACK, BOTH = "loopback", "both"
NOT_LOOKED = "the inventory of this host was written before hostbench looked at its network"
TELL = f"tell what the path carries with {BANDWIDTH.variable} in byte/s"
BITS_A_BYTE = 8


class Unlimited(Exception):
    """Why there is no limit, in one line."""


@dataclass(frozen=True)
class _Asked:
    """What of a trial decides about its limit. `mtu` is that of the path, bytes."""

    udp: bool
    version: int
    mtu: int | None
    block_bytes: int
    interface: str | None
    both: bool

    @classmethod
    def of(cls, start: StartEvent, end: EndEvent) -> "_Asked":
        """By the parameters as they were resolved, and what was found on the way."""
        block = start.params.get("block_bytes")
        return cls(
            udp=start.workload == UDP_STREAM,
            version=_ip_version(start),
            mtu=_mtu(start, end),
            block_bytes=int(block) if isinstance(block, int | float) else 0,
            interface=start.facts.get("interface"),
            both=start.params.get("direction") == BOTH,
        )


def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """The limits of a trial on `host`, by metric; a workload that has none gives an empty one."""
    if start.workload == NAIVE_STREAM:
        return {METRIC: Limit(value=None, unit=UNIT, reason=NAIVE_REASON)}
    if start.workload not in (TCP_STREAM, UDP_STREAM):
        return {}
    try:
        if start.params.get("target") == LOOPBACK:
            raise Unlimited("the loopback has no line: it is memory and the work of the kernel")
        factors = _factors(host.network, _Asked.of(start, end))
    except Unlimited as unlimited:
        return {METRIC: Limit(value=None, unit=UNIT, reason=str(unlimited))}
    value = math.prod(one.value for one in factors)
    return {METRIC: Limit(value=value, unit=UNIT, factors=factors)}


def _ip_version(start: StartEvent) -> int:
    """As the trial resolved it; of its target's address where that is left open."""
    told = str(start.params.get("ip_version"))
    if told in ("4", "6"):
        return int(told)
    try:
        return ipaddress.ip_address(start.facts.get("far_address", "")).version
    except ValueError:
        return 4


def _mtu(start: StartEvent, end: EndEvent) -> int | None:
    """The smaller of what the interface and the path allow, as far as they are known."""
    told = start.facts.get("interface_mtu", "")
    own = int(told) if told.isascii() and told.isdigit() else None
    path = end.metrics.get("path_mtu_bytes")
    known = [mtu for mtu in (own, path) if mtu is not None and mtu >= MTU_LEAST]
    return int(min(known)) if known else None


def _factors(network: Network | None, asked: _Asked) -> tuple[Factor, ...]:
    """Whose product is the limit. Raises Unlimited."""
    if network is None:
        raise Unlimited(NOT_LOOKED)
    directions = _directions(asked)
    told = network.user_bytes_per_second
    if told is not None:
        source = f"told by {BANDWIDTH.variable}"
        return (Factor(name="path_bandwidth", value=told, unit=UNIT, source=source), *directions)
    interface = network.interface(asked.interface)
    if interface is None:
        name = asked.interface or "none that the trial tells"
        raise Unlimited(f"the inventory does not have its interface ({name}); {TELL}")
    return (*_line(interface, asked), _share(network, asked), *directions)


def _line(interface: Interface, asked: _Asked) -> tuple[Factor, ...]:
    """Its speed. Raises Unlimited where it is not known, or the frames on it are not Ethernet's."""
    speed = interface.link_bits_per_second
    if speed is None:
        raise Unlimited(f"{interface.link_reason or NOT_LOOKED}; {TELL}")
    if interface.kind != "ethernet":
        raise Unlimited(f"{interface.name}: the framing of {interface.kind} is not known; {TELL}")
    if asked.both and interface.duplex != "full":
        raise Unlimited(f"{interface.name} does not say that it is full duplex; {TELL}")
    source = interface.link_source or interface.name
    return (
        Factor(name="line_speed", value=speed, unit="bit/s", source=source),
        Factor(
            name="bytes_per_bit",
            value=1 / BITS_A_BYTE,
            unit="byte/bit",
            source=f"{BITS_A_BYTE} bits are a byte",
        ),
    )


def _share(network: Network, asked: _Asked) -> Factor:
    """What the headers leave. Raises Unlimited where it is not known."""
    if asked.mtu is None:
        raise Unlimited(f"the trial does not say how large packets may be (interface_mtu); {TELL}")
    if asked.udp and asked.block_bytes <= 0:
        raise Unlimited(f"the trial does not say how large datagrams are (block_bytes); {TELL}")
    ip = f"MTU {asked.mtu}, IPv{asked.version}"
    frame = f"{FRAMING} bytes of Ethernet a frame"
    if asked.udp:
        share = udp_share(asked.mtu, asked.version, asked.block_bytes)
        source = f"{ip}, UDP datagrams of {asked.block_bytes} bytes, {frame}"
    else:
        timestamps = network.tcp_timestamps is not False
        share = tcp_share(asked.mtu, asked.version, timestamps=timestamps)
        options = "with timestamps" if timestamps else "without timestamps"
        source = f"{ip}, TCP {options}, {frame}"
    return Factor(name="goodput_share", value=share, unit="1", source=source)


def _directions(asked: _Asked) -> tuple[Factor, ...]:
    if not asked.both:
        return ()
    source = "the figure is of both directions, and each has a line of its own"
    return (Factor(name="directions", value=2.0, unit="1", source=source),)
