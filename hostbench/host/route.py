"""The address and the interface by which this host reaches another. Sends nothing."""

import contextlib
import ipaddress
import socket
import struct
import sys

from hostbench.base.errors import UsageError

# include/uapi/linux/rtnetlink.h
_RTM_NEWROUTE, _RTM_GETROUTE, _RTA_DST, _RTA_OIF = 24, 26, 1, 4
_NLM_F_REQUEST = 1
_NLMSG_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_RTMSG = struct.Struct("=BBBBBBBBI")  # family, lengths of destination and source, …, flags
_ATTRIBUTE = struct.Struct("=HH")  # length with this header, type
_ANY_PORT = 9  # connecting a datagram socket sends nothing, so any will do
_ANSWER_BYTES_MOST = 8192
_ANSWER_S_MOST = 1.0


def family_of(address: str) -> socket.AddressFamily:
    """Return AF_INET or AF_INET6."""
    return socket.AF_INET if ipaddress.ip_address(address).version == 4 else socket.AF_INET6


def source_address(to: str) -> str:
    """Return the source address of packets to `to`. Raise UsageError without a route."""
    with socket.socket(family_of(to), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((to, _ANY_PORT))
        except OSError as error:
            raise UsageError(
                f"this host has no route to {to}: {error.strerror}; give an address that it can "
                "reach"
            ) from None
        address: str = probe.getsockname()[0]
        return address


def interface_towards(to: str) -> str | None:
    """Return the interface that packets to `to` leave by, or None if the kernel does not report
    it."""
    with contextlib.suppress(OSError, struct.error):
        index = _route_index(to)
        return None if index is None else socket.if_indextoname(index)
    return None


def is_own_address(address: str) -> bool:
    """Whether this host has the address."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _route_index(to: str) -> int | None:
    """Return the number of the interface, by RTM_GETROUTE: rtnetlink(7)."""
    packed = ipaddress.ip_address(to).packed
    body = _RTMSG.pack(family_of(to), 8 * len(packed), 0, 0, 0, 0, 0, 0, 0)
    body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _RTA_DST) + packed
    length = _NLMSG_HEADER.size + len(body)
    header = _NLMSG_HEADER.pack(length, _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:  # 0: NETLINK_ROUTE
        netlink.settimeout(_ANSWER_S_MOST)
        netlink.sendto(header + body, (0, 0))
        answer = netlink.recv(_ANSWER_BYTES_MOST)
    length, kind, *_ = _NLMSG_HEADER.unpack_from(answer)
    if kind != _RTM_NEWROUTE:
        return None
    return _attribute_u32(answer[_NLMSG_HEADER.size + _RTMSG.size : length], _RTA_OIF)


def _attribute_u32(attributes: bytes, wanted: int) -> int | None:
    while len(attributes) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        if length < _ATTRIBUTE.size:
            return None
        if kind == wanted:
            return int.from_bytes(attributes[_ATTRIBUTE.size : length], sys.byteorder)
        attributes = attributes[(length + 3) & ~3 :]
    return None
