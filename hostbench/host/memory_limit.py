"""The most that all populated channels of a host's memory transfer, as a limit.

It applies to what goes to DRAM. What the last-level cache may have served of a working set is in
the limit's tolerance; a working set of less than four times that cache has no limit.
"""

from collections.abc import Iterable

from hostbench.base.files import cpu_list
from hostbench.base.units import binary_bytes
from hostbench.host.memory import BANDWIDTH_VARIABLE
from hostbench.model.host import Cache, Channels, HostInventory, Memory
from hostbench.model.limit import Factor, Limit

UNIT = "byte/s"
TOLERANCE = 0.02
# STREAM's rule for the size of its arrays, here in whole pages for each thread.
CACHES_LEAST = 4
ROUNDING = 0.01
NOT_LOOKED = "the inventory of this host was written before hostbench looked at memory channels"


def bandwidth_limit(memory: Memory | None, size: object, cache: int | None) -> Limit:
    """Return the limit for a working set of `size` bytes, with last-level caches of `cache`
    bytes."""
    if memory is None:
        return _unknown(NOT_LOOKED)
    factors = _factors(memory)
    if not factors:
        return _unknown(memory.channels_reason or NOT_LOOKED)
    if cache is None:
        return _unknown("the size of the last-level cache is not known, so it may hold all of it")
    if not isinstance(size, int | float) or size <= 0:
        return _unknown("the trial does not report how large its working set is (size_bytes)")
    if size < CACHES_LEAST * cache * (1 - ROUNDING):
        return _unknown(
            f"a working set of {binary_bytes(size)} is less than {CACHES_LEAST} times the "
            f"last-level cache ({binary_bytes(cache)}), which has a part in its figure"
        )
    value = 1.0
    for factor in factors:
        value *= factor.value
    return Limit(value=value, unit=UNIT, factors=factors, tolerance=_tolerance(size, cache))


def cache_bytes(host: HostInventory, cpus: Iterable[int], sockets: int) -> int | None:
    """Return the last-level caches of these CPUs, in bytes, or None if unknown.

    It is the larger value of two sources that disagree in virtual machines: the kernel and the C
    library.
    """
    used = set(cpus)
    data = [cache for cache in host.caches if cache.type != "Instruction"]
    last = max((cache.level for cache in data), default=None)
    kernel = sum(_bytes_of(cache, used) for cache in data if cache.level == last)
    memory = host.memory
    library = (memory.library_cache_bytes or 0) * sockets if memory is not None else 0
    return max(kernel, library) or None


def _bytes_of(cache: Cache, used: set[int]) -> int:
    sharers = [set(cpu_list(text) or ()) for text in cache.cpu_lists]
    instances = sum(bool(used & cpus) for cpus in sharers) if sharers else cache.instances
    return (cache.size_bytes or 0) * instances


def _factors(memory: Memory) -> tuple[Factor, ...]:
    """Return the factors of the bandwidth; empty if it is unknown."""
    if memory.user_bytes_per_second is not None:
        return (_whole(memory.user_bytes_per_second, f"set by {BANDWIDTH_VARIABLE}"),)
    channels, source = memory.channels or (), memory.channels_source or ""
    if len(channels) == 1:
        return _of_channels(channels[0], source)
    if channels:
        return (_whole(sum(one.bytes_per_second for one in channels), source),)
    return ()


def _whole(bytes_per_second: float, source: str) -> Factor:
    return Factor(name="memory_bandwidth", value=bytes_per_second, unit=UNIT, source=source)


def _of_channels(channels: Channels, source: str) -> tuple[Factor, ...]:
    return (
        Factor(name="channels", value=channels.count, unit="channel", source=source),
        Factor(
            name="transfers_per_second",
            value=channels.transfers_per_second,
            unit="transfer/s/channel",
            source="as the firmware has configured them, SMBIOS type 17",
        ),
        Factor(
            name="width",
            value=channels.width_bits / 8,
            unit="byte/transfer",
            source="data width, SMBIOS type 17",
        ),
    )


def _tolerance(size: float, cache: int) -> float:
    """Return the tolerance: the usual one, and what the cache can have served, in each pass at most
    its size."""
    return round(TOLERANCE + cache / (size - cache), 3)


def _unknown(reason: str) -> Limit:
    return Limit(value=None, unit=UNIT, tolerance=TOLERANCE, reason=reason)
