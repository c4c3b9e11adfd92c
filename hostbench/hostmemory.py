"""The memory of this host, for the inventory. What cannot be read is None, never an error."""

import os
import re
from pathlib import Path

from hostbench.memorychannels import read_channels
from hostbench.models.host import HugePagePool, Memory, NumaNode, Virtualisation
from hostbench.rating import Rating
from hostbench.smallfiles import cpu_list, read_number, read_text

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
    """What memory the host has. Raises UsageError, see user_bandwidth()."""
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
    """The bandwidth in byte/s that the user knows this host's memory to have, None: it is not
    told. Raises UsageError for anything else."""
    return BANDWIDTH.told()


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
    """The larger of levels 3 and 4, else level 2, as the benchmark programs take it."""
    for names in _LIBRARY_CACHES:
        try:
            size = max(os.sysconf(name) for name in names)
        except (OSError, ValueError):
            continue
        if size > 0:
            return size
    return None


def _chosen(text: str | None) -> str | None:
    """`madvise` of `always [madvise] never`."""
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
