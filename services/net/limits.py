"""Theoretical limits of the net workloads: the user's rating of the path, else the rate of a
physical interface's line, minus the headers.

The loopback has no limit, and the stated speed of an interface made by software is none. A round
trip is a time, and connections a second have no known limit.
"""

import ipaddress
import math
from dataclasses import dataclass

from hostbench.host.network import BANDWIDTH
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory, Interface, Network
from hostbench.model.limit import NAIVE_REASON, Factor, Limit
from hostbench.plan.workloads import LOOPBACK, TARGET
from services.net.goodput import FRAMING, MTU_LEAST, tcp_share, udp_share

METRIC, UNIT = "bytes_per_second", "byte/s"
TCP_STREAM, UDP_STREAM = "tcp_stream", "udp_stream"
NAIVE_STREAM = "naive_stream"
BOTH = "both"
NOT_LOOKED = "the inventory of this host was written before hostbench looked at its network"
TELL = f"set the path's bandwidth with {BANDWIDTH.variable} in byte/s"
BITS_A_BYTE = 8


class Unlimited(Exception):
    """Why there is no limit, in one line."""


@dataclass(frozen=True)
class _Conditions:
    """The properties of a trial that determine its limit. `mtu` is that of the path, in bytes."""

    udp: bool
    version: int
    mtu: int | None
    block_bytes: int
    interface: str | None
    both: bool

    @classmethod
    def of(cls, start: StartEvent, end: EndEvent) -> "_Conditions":
        """Return the conditions from the resolved parameters and from what was found on the
        path."""
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
    """Return the limits of a trial on `host`, by metric; empty for a workload without limits."""
    if start.workload == NAIVE_STREAM:
        return {METRIC: Limit(value=None, unit=UNIT, reason=NAIVE_REASON)}
    if start.workload not in (TCP_STREAM, UDP_STREAM):
        return {}
    try:
        if start.params.get(TARGET) == LOOPBACK:
            raise Unlimited("the loopback has no line: it is memory and the work of the kernel")
        factors = _factors(host.network, _Conditions.of(start, end))
    except Unlimited as unlimited:
        return {METRIC: Limit(value=None, unit=UNIT, reason=str(unlimited))}
    value = math.prod(one.value for one in factors)
    return {METRIC: Limit(value=value, unit=UNIT, factors=factors)}


def _ip_version(start: StartEvent) -> int:
    """Return the IP version that the trial resolved; if it is open, that of its target's
    address."""
    stated = str(start.params.get("ip_version"))
    if stated in ("4", "6"):
        return int(stated)
    try:
        return ipaddress.ip_address(start.facts.get("far_address", "")).version
    except ValueError:
        return 4


def _mtu(start: StartEvent, end: EndEvent) -> int | None:
    """Return the smaller MTU of the interface and the path, as far as they are known."""
    stated = start.facts.get("interface_mtu", "")
    own = int(stated) if stated.isascii() and stated.isdigit() else None
    path = end.metrics.get("path_mtu_bytes")
    known = [mtu for mtu in (own, path) if mtu is not None and mtu >= MTU_LEAST]
    return int(min(known)) if known else None


def _factors(network: Network | None, conditions: _Conditions) -> tuple[Factor, ...]:
    """Return the factors of the limit. Raise Unlimited."""
    if network is None:
        raise Unlimited(NOT_LOOKED)
    directions = _directions(conditions)
    stated = network.user_bytes_per_second
    if stated is not None:
        source = f"set by {BANDWIDTH.variable}"
        return (Factor(name="path_bandwidth", value=stated, unit=UNIT, source=source), *directions)
    interface = network.interface(conditions.interface)
    if interface is None:
        name = conditions.interface or "none that the trial reports"
        raise Unlimited(f"the inventory does not have its interface ({name}); {TELL}")
    return (*_line(interface, conditions), _share(network, conditions), *directions)


def _line(interface: Interface, conditions: _Conditions) -> tuple[Factor, ...]:
    """Return the line's speed. Raise Unlimited if it is unknown, or if its frames are not
    Ethernet's."""
    speed = interface.link_bits_per_second
    if speed is None:
        raise Unlimited(f"{interface.link_reason or NOT_LOOKED}; {TELL}")
    if interface.kind != "ethernet":
        raise Unlimited(f"{interface.name}: the framing of {interface.kind} is not known; {TELL}")
    if conditions.both and interface.duplex != "full":
        raise Unlimited(f"{interface.name} does not report that it is full duplex; {TELL}")
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


def _share(network: Network, conditions: _Conditions) -> Factor:
    """Return the share that the headers leave. Raise Unlimited if it is unknown."""
    if conditions.mtu is None:
        raise Unlimited(
            f"the trial does not report how large packets may be (interface_mtu); {TELL}"
        )
    if conditions.udp and conditions.block_bytes <= 0:
        raise Unlimited(f"the trial does not report how large datagrams are (block_bytes); {TELL}")
    ip = f"MTU {conditions.mtu}, IPv{conditions.version}"
    frame = f"{FRAMING} bytes of Ethernet a frame"
    if conditions.udp:
        share = udp_share(conditions.mtu, conditions.version, conditions.block_bytes)
        source = f"{ip}, UDP datagrams of {conditions.block_bytes} bytes, {frame}"
    else:
        timestamps = network.tcp_timestamps is not False
        share = tcp_share(conditions.mtu, conditions.version, timestamps=timestamps)
        options = "with timestamps" if timestamps else "without timestamps"
        source = f"{ip}, TCP {options}, {frame}"
    return Factor(name="goodput_share", value=share, unit="1", source=source)


def _directions(conditions: _Conditions) -> tuple[Factor, ...]:
    if not conditions.both:
        return ()
    source = "the figure is of both directions, and each has a line of its own"
    return (Factor(name="directions", value=2.0, unit="1", source=source),)
