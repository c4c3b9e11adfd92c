"""The share of a line's bits that is payload, from the sizes of the headers.

Ethernet: IEEE 802.3, clause 4: preamble, header, check sequence and the gap between frames, with at
least 46 bytes of content. IPv4 is RFC 791, IPv6 and its fragments RFC 8200, TCP RFC 9293, its
timestamps RFC 7323 (10 bytes, and 2 to fill the word), UDP RFC 768.
"""

PREAMBLE, ETHERNET, CHECK_SEQUENCE, GAP = 8, 14, 4, 12
FRAMING = PREAMBLE + ETHERNET + CHECK_SEQUENCE + GAP
FRAME_PAYLOAD_LEAST = 46
IP = {4: 20, 6: 40}
# In IPv4, every header has the position of its fragment.
FRAGMENT = {4: 0, 6: 8}
FRAGMENT_UNIT = 8
TCP, TIMESTAMPS, UDP = 20, 12, 8
# RFC 791: the size that every host accepts; a smaller MTU leaves no payload either.
MTU_LEAST = 68


def tcp_share(mtu: int, version: int, *, timestamps: bool) -> float:
    """Return the share for full segments: a stream that is limited by its line fills them, however
    small its blocks are."""
    headers = IP[version] + TCP + (TIMESTAMPS if timestamps else 0)
    return max(0, mtu - headers) / (mtu + FRAMING)


def udp_share(mtu: int, version: int, block: int) -> float:
    """Return the share for datagrams of `block` bytes, in as many fragments as they need."""
    return block / _wire_bytes(mtu, version, block + UDP)


def _wire_bytes(mtu: int, version: int, length: int) -> int:
    """Return the bytes that a datagram takes on the line; `length` is its UDP header and
    payload."""
    if length + IP[version] <= mtu:
        return _frame(length + IP[version])
    headers = IP[version] + FRAGMENT[version]
    piece = (mtu - headers) // FRAGMENT_UNIT * FRAGMENT_UNIT
    whole, rest = divmod(length, piece)
    return whole * _frame(piece + headers) + (_frame(rest + headers) if rest else 0)


def _frame(packet: int) -> int:
    return max(packet, FRAME_PAYLOAD_LEAST) + FRAMING
