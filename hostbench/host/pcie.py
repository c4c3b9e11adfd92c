"""PCI Express links: what they carry, and what sysfs reports about them."""

import re
from pathlib import Path

from hostbench.base.files import read_number, read_text
from hostbench.model.host import PcieLink

# PCI Express Base Specification: transfers a second and lane, and the share of the bits that is
# data: 8b/10b coding, from 8 GT/s on 128b/130b, at 64 GT/s flits with 242 of 256 bytes.
ENCODING = {
    2.5: 8 / 10,
    5.0: 8 / 10,
    8.0: 128 / 130,
    16.0: 128 / 130,
    32.0: 128 / 130,
    64.0: 242 / 256,
}
_WORDS = {8 / 10: "8b/10b", 128 / 130: "128b/130b", 242 / 256: "flits of 242 in 256 bytes"}
# By generation, from 1.
GENERATIONS = tuple(ENCODING)
# The least bytes of a packet besides its data: 4 bytes of framing with the sequence number, a
# header of 3 words, a checksum of 4 bytes.
PACKET_OVERHEAD_BYTES = 20
# Where the PCI Express capability states the size of packets: in the device control register, bits
# 5 to 7, as 128 bytes times a power of two.
_CAPABILITIES, _CAPABILITY_PCIE, _DEVICE_CONTROL = 0x34, 0x10, 0x08
_CAPABILITIES_MOST = 48


def coding(gigatransfers: float) -> str:
    """Return the coding of a link of this speed (GT/s, one of ENCODING), in words."""
    return _WORDS[ENCODING[gigatransfers]]


def bytes_per_second(gigatransfers: float, lanes: int) -> float:
    """Return what a link carries in one direction in byte/s, headers of packets included."""
    return gigatransfers * 1e9 * ENCODING[gigatransfers] / 8 * lanes


def payload_share(payload_bytes: int) -> float:
    """Return the share that the headers leave at most, with packets of this much data."""
    return payload_bytes / (payload_bytes + PACKET_OVERHEAD_BYTES)


def speed_and_width(device: Path, which: str = "current") -> tuple[float, int] | None:
    """Return GT/s and lanes of a PCI device's link, or None if sysfs does not report them or the
    speed is unknown. `which`: current or max."""
    speed = re.match(r"([\d.]+) GT/s", read_text(device / f"{which}_link_speed") or "")
    width = read_number(device / f"{which}_link_width")
    # A port without a link reports 0 lanes, one that does not know reports 63 or 255.
    if speed is None or not width or width > 32 or float(speed[1]) not in ENCODING:
        return None
    return float(speed[1]), width


def link(device: Path) -> PcieLink | None:
    """Return the link of a device, by its directory in sysfs, or None if sysfs does not report
    it."""
    now, most = speed_and_width(device), speed_and_width(device, "max")
    if now is None or most is None:
        return None
    # Some cards contain a switch, and the link to the host is the switch's.
    above = [at for at in device.resolve().parents if (at / "max_link_speed").exists()]
    ports_now = [found for at in above if (found := speed_and_width(at)) is not None]
    ports_most = [found for at in above if (found := speed_and_width(at, "max")) is not None]
    return PcieLink(
        transfers_per_second=min(speed for speed, _ in (now, *ports_now)) * 1e9,
        lanes=min(lanes for _, lanes in (now, *ports_now)),
        transfers_per_second_most=most[0] * 1e9,
        lanes_most=most[1],
        port_transfers_per_second_most=min((speed * 1e9 for speed, _ in ports_most), default=None),
        port_lanes_most=min((lanes for _, lanes in ports_most), default=None),
        payload_bytes=packet_payload_bytes(device),
    )


def packet_payload_bytes(device: Path) -> int | None:
    """Return the most data that a packet of this device carries, or None if only root may read
    it."""
    try:
        config = (device / "config").read_bytes()
    except OSError:
        return None
    at = config[_CAPABILITIES] if len(config) > 64 else 0
    for _ in range(_CAPABILITIES_MOST):
        if at < 64 or at + _DEVICE_CONTROL + 2 > len(config):
            return None
        if config[at] == _CAPABILITY_PCIE:
            control = int.from_bytes(config[at + _DEVICE_CONTROL :][:2], "little")
            return int(128 << (control >> 5 & 7))
        at = config[at + 1]
    return None
