"""What `hostbench doctor` checks for the net subsystem only."""

from hostbench.base.units import binary_bytes, human
from hostbench.doctor.check import (
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    problem,
    unknown,
    unreadable,
)
from hostbench.doctor.installed import peers_installed
from hostbench.doctor.view import View
from hostbench.host.network import BANDWIDTH
from hostbench.model.doctor import Evidence
from hostbench.model.host import Interface
from services.net.peers import PACKAGES
from services.net.peers.case import UDP_BUFFER_BYTES

CLASS = "/sys/class/net"
CORE, IPV4 = "/proc/sys/net/core", "/proc/sys/net/ipv4"
TRACKED = "/proc/sys/net/netfilter/nf_conntrack_count"
AUTOGROUP = "/proc/sys/kernel/sched_autogroup_enabled"
CUBIC = "cubic"
# include/uapi/linux/capability.h: with this capability, sockets get buffers beyond the kernel's
# limits.
CAP_NET_ADMIN = 12
DOWN = "down"


def _cards(view: View) -> list[Interface]:
    """Return the physical interfaces that are up."""
    network = view.host.network
    assert network is not None, "the inventory of this host has it"
    return [one for one in network.interfaces if one.physical and one.state != DOWN]


def net_limit(view: View) -> Outcome:
    """Whether figures between hosts have a limit: the most that the path, or a line, carries."""
    network = view.host.network
    assert network is not None, "the inventory of this host has it"
    if network.user_bytes_per_second is not None:
        rated = Evidence(source=BANDWIDTH.variable, value=f"{network.user_bytes_per_second:g}")
        return ok(f"set by you: {human(network.user_bytes_per_second, 'byte/s')}", rated)
    cards = _cards(view)
    known = [one for one in cards if one.link_bits_per_second is not None]
    if known:
        seen = [
            Evidence(source=f"{CLASS}/{one.name}/speed", value=one.link_source) for one in known
        ]
        lines = (f"{one.name} {human(one.link_bits_per_second, 'bit/s')}" for one in known)
        return ok(", ".join(lines), *seen)
    reasons = [one.link_reason for one in cards or network.interfaces if one.link_reason]
    seen = [Evidence(source=CLASS, reason=reason) for reason in reasons[:8]]
    nothing = Evidence(source=CLASS, reason="no interface")
    advice = Advice(f"{BANDWIDTH.variable}=… in byte/s of payload", Reach.OWN)
    text = "limits between hosts will be empty: no line is known"
    return unknown(text, *(seen or [nothing]), advice=advice)


def duplex(view: View) -> Outcome:
    """Whether a card has negotiated half duplex, because of a bad cable or a wrong setting."""
    cards = [one for one in _cards(view) if one.duplex is not None]
    if not cards:
        return unknown("no card reports it", Evidence(source=f"{CLASS}/*/duplex", reason="no card"))
    seen = [Evidence(source=f"{CLASS}/{one.name}/duplex", value=one.duplex) for one in cards]
    half = [one.name for one in cards if one.duplex == "half"]
    if half:
        advice = Advice(f"ethtool -s {half[0]} autoneg on; look at the cable", Reach.MACHINE)
        return problem(f"{', '.join(half)}: half", *seen, advice=advice)
    return ok("full", *seen)


def congestion_control(view: View) -> Outcome:
    """The congestion control of new connections. It makes a difference of a factor of two on a fast
    path."""
    seen = view.read(f"{IPV4}/tcp_congestion_control")
    if not seen.text:
        return unreadable(seen)
    if seen.text == CUBIC:
        return ok(CUBIC, seen)
    text = f"{seen.text}: most figures of other hosts are {CUBIC}'s"
    advice = Advice(
        f"congestion: {CUBIC} in the case, or sysctl -w net.ipv4.tcp_congestion_control={CUBIC}",
        Reach.KERNEL,
    )
    return notice(text, seen, advice=advice)


def socket_buffers(view: View) -> Outcome:
    """How large the buffers of datagrams may be."""
    readings = [view.read(f"{CORE}/{name}_max") for name in ("rmem", "wmem")]
    sizes = [reading.number for reading in readings]
    least = min((size for size in sizes if size is not None), default=None)
    if least is None:
        return unreadable(readings[0])
    if least >= UDP_BUFFER_BYTES:
        return ok(f"up to {binary_bytes(least)}", *readings)
    if view.has_capability(CAP_NET_ADMIN):
        return ok("as large as requested, by CAP_NET_ADMIN", *readings)
    text = (
        f"{binary_bytes(least)} at most, where udp_stream asks for "
        f"{binary_bytes(UDP_BUFFER_BYTES)}: more datagrams are lost at the receiver"
    )
    action = f"sysctl -w net.core.rmem_max={UDP_BUFFER_BYTES} net.core.wmem_max={UDP_BUFFER_BYTES}"
    return notice(text, *readings, advice=Advice(action, Reach.KERNEL))


def connection_tracking(view: View) -> Outcome:
    """Whether the kernel looks up every packet among its known connections."""
    network_there = view.read(f"{CORE}/rmem_max")
    if not network_there.text:
        return unreadable(network_there)
    tracked = view.read(TRACKED)
    if not tracked.text:
        return ok("off", tracked)
    text = f"on, with {tracked.text} connections: each packet is looked up, and a table can fill"
    advice = Advice("take the test's traffic out: iptables -t raw … -j CT --notrack", Reach.KERNEL)
    return notice(text, tracked, advice=advice)


def session_groups(view: View) -> Outcome:
    """Whether the kernel shares CPUs first among sessions, and only then among their threads.

    Threads of one session that constantly wake each other, as both ends of round trips do, then
    kept a process of another session waiting for seconds (Linux 6.18; perf bench sched pipe does
    the same). A service that cannot renew a lease loses its trial.
    """
    seen = view.read(AUTOGROUP)
    if seen.text == "0":
        return ok("off", seen)
    if seen.text != "1":
        return unreadable(seen)
    text = "on: round trips of many streams can keep the services waiting until a lease runs out"
    advice = Advice("sysctl kernel.sched_autogroup_enabled=0", Reach.KERNEL)
    return notice(text, seen, advice=advice)


def net_peers(view: View) -> Outcome:
    """Whether the tools are installed that figures can be compared with."""
    del view
    return peers_installed(PACKAGES)


CHECKS = (
    Check("net_limit", Topic.NETWORK, "Limit of the network", ("net",), net_limit),
    Check("duplex", Topic.NETWORK, "Duplex", ("net",), duplex),
    Check("congestion_control", Topic.NETWORK, "Congestion control", ("net",), congestion_control),
    Check("socket_buffers", Topic.NETWORK, "Socket buffers", ("net",), socket_buffers),
    Check(
        "connection_tracking", Topic.NETWORK, "Connection tracking", ("net",), connection_tracking
    ),
    Check("session_groups", Topic.NETWORK, "Groups of sessions", ("net",), session_groups),
    Check("net_peers", Topic.INSTALLATION, "Peers of networks", ("net",), net_peers),
)
