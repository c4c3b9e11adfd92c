"""The memory of this host, for the inventory. What cannot be read is None, never an error."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.files import cpu_list, read_number, read_text
from hostbench.base.rating import Rating
from hostbench.host.smbios import MemoryDevice, SmbiosError, memory_devices
from hostbench.model.host import Channels, HugePagePool, Memory, NumaNode, Virtualisation

BANDWIDTH_VARIABLE = "HOSTBENCH_MEMORY_BANDWIDTH"
BANDWIDTH = Rating(
    variable=BANDWIDTH_VARIABLE,
    what="a bandwidth",
    unit="byte/s",
    most=1e15,  # a hundred times what any host of today has
    example="307.2e9 for 8 channels of 4800 MT/s",
)
# glibc's bits/confname.h: _SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE.
_LIBRARY_CACHES = ((197, 194), (191,))
_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage"
_POOLS = "sys/kernel/mm/hugepages"


def memory(root: Path, virtualisation: Virtualisation) -> Memory:
    """Return the memory of the host. Raise UsageError; see user_bandwidth()."""
    found = read_channels(root, virtualisation)
    return Memory(
        nodes=_nodes(root),
        channels=found.channels,
        channels_source=found.source,
        channels_reason=found.reason,
        channels_wired=found.wired,
        user_bytes_per_second=user_bandwidth(),
        library_cache_bytes=_library_cache_bytes(),
        transparent_huge_pages=_chosen(read_text(root / _HUGE_PAGES / "enabled")),
        transparent_huge_page_defrag=_chosen(read_text(root / _HUGE_PAGES / "defrag")),
        huge_page_pools=_pools(root),
    )


def user_bandwidth() -> float | None:
    """Return HOSTBENCH_MEMORY_BANDWIDTH in byte/s; None if it is not set. Raise UsageError for
    anything else."""
    return BANDWIDTH.value()


def _nodes(root: Path) -> tuple[NumaNode, ...]:
    directories = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = (_node(directory) for directory in directories)
    return tuple(sorted(nodes, key=lambda node: node.node))


def _node(directory: Path) -> NumaNode:
    meminfo = read_text(directory / "meminfo") or ""
    total = re.search(r"^Node \d+ MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return NumaNode(
        node=int(directory.name.removeprefix("node")),
        memory_bytes=int(total[1]) * 1024 if total else None,
        cpus=cpu_list(read_text(directory / "cpulist")) or (),
    )


def _library_cache_bytes() -> int | None:
    """Return the larger of levels 3 and 4, else level 2, as the benchmark programs do."""
    for names in _LIBRARY_CACHES:
        try:
            size = max(os.sysconf(name) for name in names)
        except (OSError, ValueError):
            continue
        if size > 0:
            return size
    return None


def _chosen(text: str | None) -> str | None:
    """Return `madvise` from `always [madvise] never`."""
    match = re.search(r"\[([\w+]+)\]", text or "")
    return match[1] if match else None


def _pools(root: Path) -> tuple[HugePagePool, ...]:
    pools = []
    for directory in (root / _POOLS).glob("hugepages-*kB"):
        size = re.fullmatch(r"hugepages-(\d+)kB", directory.name, re.ASCII)
        pages = read_number(directory / "nr_hugepages")
        if size and pages is not None:
            free = read_number(directory / "free_hugepages")
            pools.append(HugePagePool(page_bytes=int(size[1]) * 1024, pages=pages, free_pages=free))
    return tuple(sorted(pools, key=lambda pool: pool.page_bytes))


TABLE = "sys/firmware/dmi/tables/DMI"
REMEDY = "set the bandwidth with HOSTBENCH_MEMORY_BANDWIDTH in byte/s"
# No board has more sockets for one channel than this; with more, letters do not stand for channels.
SOCKETS_A_CHANNEL_MOST = 3
WIDTHS_BITS = range(8, 1025, 8)
SPEEDS = (1e8, 1e11)

_CHANNEL = re.compile(r"^.*?CHAN(?:NEL)?[ _-]*(?:[A-Z]|\d+)(?![A-Z0-9])", re.IGNORECASE)
_SOCKET_WORD = r"(?:CPU|PROC(?:ESSOR)?|SOCKET|NODE|P)[ _-]*\d+"
_SOCKET = re.compile(rf"(?<![A-Z]){_SOCKET_WORD}", re.IGNORECASE)
_SLOT = re.compile(r"(?:DIMM|SLOT)[ _-]*\d+", re.IGNORECASE)
# P1-DIMMA1, CPU1_DIMM_A1, DIMM_P0_A0, DIMM_A1, A1
_LETTER = re.compile(
    rf"((?:{_SOCKET_WORD}[ _-]+)?(?:DIMM[ _-]*)?(?:{_SOCKET_WORD}[ _-]+)?[A-Z])[ _-]?\d{{1,2}}",
    re.IGNORECASE,
)


class Unknown(Exception):
    """Why the channels are unknown, in one line."""


@dataclass(frozen=True)
class Found:
    """The populated channels and where they were read; or why they are unknown. `wired`: how many
    channels the board has."""

    channels: tuple[Channels, ...] | None = None
    source: str | None = None
    reason: str | None = None
    wired: int | None = None


def read_channels(root: Path, virtualisation: Virtualisation) -> Found:
    """Return the memory channels of the host whose files are below `root`."""
    try:
        _refuse_virtual(virtualisation)
        devices = _devices(root)
        return _by_names(devices) or _by_controllers(root, devices)
    except Unknown as unknown:
        return Found(reason=f"{unknown}; {REMEDY}")


def _refuse_virtual(virtualisation: Virtualisation) -> None:
    if virtualisation.is_guest:
        raise Unknown("this is a virtual machine, and the memory devices that it sees are not real")


def _devices(root: Path) -> list[MemoryDevice]:
    """Return all devices, if some are populated and these are plausible. Raise Unknown
    otherwise."""
    devices = _parsed(root / TABLE)
    populated = [device for device in devices if device.is_populated]
    if not populated:
        raise Unknown(f"SMBIOS (/{TABLE}) names no memory device that is populated")
    for device in populated:
        if device.width_bits not in WIDTHS_BITS:
            raise Unknown(f"SMBIOS names no data width of memory device {device.name}")
        speed = device.transfers_per_second
        if speed is None or not SPEEDS[0] <= speed <= SPEEDS[1]:
            raise Unknown(f"SMBIOS names no configured speed of memory device {device.name}")
    return devices


def _parsed(path: Path) -> list[MemoryDevice]:
    try:
        return memory_devices(path.read_bytes())
    except PermissionError:
        raise Unknown(f"only root may read /{TABLE}: run as root") from None
    except OSError:
        raise Unknown(
            f"there is no /{TABLE} here (a container has it when it is mounted)"
        ) from None
    except SmbiosError as error:
        raise Unknown(f"the table of SMBIOS (/{TABLE}) is damaged: {error}") from None


def _by_names(devices: Sequence[MemoryDevice]) -> Found | None:
    """Return channels by the names of the sockets, or None when the names do not show them."""
    names = [_channel_name(device) for device in devices]
    if None in names:
        names = _lettered(devices)
    if None in names:
        return None
    by_channel: dict[str, list[MemoryDevice]] = {}
    for name, device in zip(names, devices, strict=True):
        if device.is_populated:
            by_channel.setdefault(str(name), []).append(device)
    kinds = Counter(_kind(sharing) for sharing in by_channel.values())
    channels = _channels(kinds)
    source = f"SMBIOS type 17: {_in_words(channels, devices)}"
    return Found(channels, source, wired=len(set(names)))


def _channel_name(device: MemoryDevice) -> str | None:
    """Return what all devices of one channel have in common, such as `P0 CHANNEL A`."""
    for label, other in ((device.bank, device.locator), (device.locator, device.bank)):
        match = _CHANNEL.match(label)
        if match:
            socket = _SOCKET.search(_SLOT.sub("", other))
            words = [socket[0] if socket else "", _SLOT.sub("", match[0])]
            return " ".join(" ".join(words).upper().split())
    return None


def _lettered(devices: Iterable[MemoryDevice]) -> list[str | None]:
    """Return the channels of sockets such as P1-DIMMA1, whose letter is the channel. With too many
    sockets for one letter, the letter must be the processor (A1 to A16)."""
    matches = [_LETTER.fullmatch(device.locator) for device in devices]
    names = [match and match[1].upper() for match in matches]
    crowded = any(count > SOCKETS_A_CHANNEL_MOST for count in Counter(names).values())
    return [None for _ in names] if crowded else names


def _by_controllers(root: Path, devices: Sequence[MemoryDevice]) -> Found:
    """Return channels by the kernel's memory controllers, if all devices are alike."""
    populated = [device for device in devices if device.is_populated]
    places = {
        (place.parent.parent.name, _channel_of(read_text(place) or ""))
        for kind in ("dimm", "rank")
        for place in (root / "sys/devices/system/edac/mc").glob(f"mc*/{kind}*/dimm_location")
        if read_number(place.with_name("size"))
    }
    if not places or any(channel is None for _, channel in places):
        raise Unknown(
            f"the name of memory device {populated[0].name} does not show its channel, nor do the "
            "kernel's memory controllers (EDAC)"
        )
    kinds = {_kind([device]) for device in populated}
    if len(kinds) > 1:
        raise Unknown("SMBIOS does not show which of the unlike memory devices share a channel")
    channels = _channels(Counter({kinds.pop(): len(places)}))
    source = f"SMBIOS type 17, channels by EDAC: {_in_words(channels, devices)}"
    return Found(channels, source)


def _channel_of(location: str) -> str | None:
    """Return `branch 0 channel 1` from `branch 0 channel 1 slot 0`."""
    words = re.findall(r"(?:branch|channel) \d+", location)
    return " ".join(words) if words and words[-1].startswith("channel") else None


def _kind(sharing: Sequence[MemoryDevice]) -> tuple[float, int]:
    """Return the speed and width of a channel: all its devices run at the speed of the slowest."""
    speeds = [device.transfers_per_second or 0.0 for device in sharing]
    return min(speeds), max(device.width_bits or 0 for device in sharing)


def _channels(kinds: Counter[tuple[float, int]]) -> tuple[Channels, ...]:
    return tuple(
        Channels(count=count, transfers_per_second=speed, width_bits=width)
        for (speed, width), count in sorted(kinds.items(), reverse=True)
    )


def _in_words(channels: Iterable[Channels], devices: Sequence[MemoryDevice]) -> str:
    populated = sum(device.is_populated for device in devices)
    modules = ", ".join(
        f"{one.count} × {one.transfers_per_second / 1e6:g} MT/s × {one.width_bits} bits"
        for one in channels
    )
    return f"{modules}, {populated} of {len(devices)} sockets populated"
