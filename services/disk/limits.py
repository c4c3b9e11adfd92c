"""Theoretical limits of the disk workloads: the user's rating of the disk, else what its link
carries.

A limit applies to what goes to the disk. What the page cache may have served or absorbed has none,
because the figure is then not the disk's alone; the trial's own evidence shows whether it did.
"""

import math
from dataclasses import dataclass

from hostbench.base.rating import Rating
from hostbench.base.units import bound
from hostbench.host.disk import BANDWIDTH, INFERRED, OPERATIONS
from hostbench.model.events import EndEvent, ParamValue, StartEvent
from hostbench.model.host import HostInventory, ScratchPlace
from hostbench.model.limit import NAIVE_REASON, Factor, Limit

BYTES, BYTES_UNIT = "bytes_per_second", "byte/s"
OPERATIONS_METRIC, OPERATIONS_UNIT = "operations_per_second", "operation/s"
# The direction of a workload's bytes; a commit is a time, and times have no limit.
READING = frozenset({"seq_read", "rand_read"})
WRITING = frozenset({"seq_write", "rand_write"})
MIXED = frozenset({"seq_rw", "rand_rw"})
NAIVE = frozenset({"naive_read", "naive_write", "naive_rw"})
RANDOM = frozenset({"rand_read", "rand_write", "rand_rw"})
DIRECT = "direct"
BUFFERED = "buffered"
SYNCED_AT_END = "buffered+fsync_end"
# The least share of the written bytes that must have left the page cache; with less, it kept some
# back.
WRITTEN_RATIO_LEAST = 0.95
NOT_LOOKED = "the inventory of this host was written before hostbench looked at its disks"
TELL = f"set the disk's bandwidth with {BANDWIDTH.variable} in byte/s"


class Unlimited(Exception):
    """Why there is no limit, in one line."""


@dataclass(frozen=True)
class _Conditions:
    """The properties of a trial that determine its limit."""

    workload: str
    mode: str
    block_bytes: float
    read_share: float
    compressible: float

    @property
    def mixes(self) -> bool:
        """Whether it both reads and writes."""
        return 0 < self.read_share < 1

    @classmethod
    def of(cls, start: StartEvent) -> "_Conditions":
        """Return the conditions from the resolved parameters."""
        params = start.params
        return cls(
            workload=start.workload,
            mode=str(params.get("cache_mode")),
            block_bytes=_number(params.get("block_bytes"), 0.0),
            read_share=_share_of_reads(start.workload, params.get("read_share")),
            compressible=_number(params.get("compressible"), 0.0),
        )


def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """Return the limits of a trial on `host`, by metric; empty for a workload without limits."""
    if start.workload in NAIVE:
        return {
            BYTES: Limit(value=None, unit=BYTES_UNIT, reason=NAIVE_REASON),
            OPERATIONS_METRIC: Limit(value=None, unit=OPERATIONS_UNIT, reason=NAIVE_REASON),
        }
    if start.workload not in READING | WRITING | MIXED:
        return {}
    conditions = _Conditions.of(start)
    try:
        _refuse_page_cache(conditions, end)
    except Unlimited as unlimited:
        return {
            BYTES: _null(BYTES_UNIT, unlimited),
            OPERATIONS_METRIC: _null(OPERATIONS_UNIT, unlimited),
        }
    return {
        BYTES: _bytes_limit(host.scratch, conditions),
        OPERATIONS_METRIC: _operations_limit(host.scratch, conditions),
    }


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def _share_of_reads(workload: str, read_share: ParamValue | tuple[ParamValue, ...] | None) -> float:
    if workload in MIXED:
        return _number(read_share, 0.5)
    return 1.0 if workload in READING else 0.0


def _refuse_page_cache(conditions: _Conditions, end: EndEvent) -> None:
    """Raise Unlimited if not every byte of the figure came from or went to the disk."""
    if conditions.mode.startswith(DIRECT):
        return
    if conditions.mode == BUFFERED:
        raise Unlimited("cache_mode buffered: the page cache takes part in the figure")
    if conditions.read_share > 0:
        # O_DSYNC and fsync only concern what is written.
        raise Unlimited(f"cache_mode {conditions.mode}: the page cache takes part in what is read")
    if conditions.mode == SYNCED_AT_END:
        written = end.metrics.get("device_write_ratio")
        if written is None or written < WRITTEN_RATIO_LEAST:
            raise Unlimited(
                "data that is written several times before a sync may reach the disk once "
                "(device_write_ratio)"
            )


def _bandwidth(place: ScratchPlace | None, conditions: _Conditions) -> tuple[Factor, ...]:
    """Return the factors of the bandwidth. Raise Unlimited if it is unknown."""
    if place is None:
        raise Unlimited(NOT_LOOKED)
    if place.user_bytes_per_second is not None:
        if conditions.mixes:
            raise Unlimited(_of_one_direction(BANDWIDTH))
        return (
            Factor(
                name="disk_bandwidth",
                value=place.user_bytes_per_second,
                unit=BYTES_UNIT,
                source=f"set by {BANDWIDTH.variable}",
            ),
        )
    if place.device is None:
        raise Unlimited(f"{place.device_reason or NOT_LOOKED}; {TELL}")
    if (place.device_source or "").startswith(INFERRED):
        raise Unlimited(f"the disk is not known for certain ({place.device_source}); {TELL}")
    link = place.device.link_bytes_per_second
    if link is None:
        raise Unlimited(f"{place.device.link_reason or NOT_LOOKED}; {TELL}")
    if conditions.compressible > 0:
        raise Unlimited(f"compressible data may be smaller on the link; {TELL}")
    source = " + ".join(disk.link_source or disk.name for disk in place.device.disks)
    factors = (Factor(name="link_ceiling", value=link, unit=BYTES_UNIT, source=source),)
    busier = max(conditions.read_share, 1 - conditions.read_share)
    if busier == 1 or not all(disk.link_duplex for disk in place.device.disks):
        return factors
    return (
        *factors,
        Factor(
            name="both_directions",
            value=1 / busier,
            unit="1",
            source=f"the busier direction carries {bound(busier)} of the bytes, the other the rest",
        ),
    )


def _of_one_direction(rating: Rating) -> str:
    return f"{rating.variable} is for reads or for writes, and a mix of both may exceed it"


def _bytes_limit(place: ScratchPlace | None, conditions: _Conditions) -> Limit:
    try:
        return _product(BYTES_UNIT, _bandwidth(place, conditions))
    except Unlimited as unlimited:
        return _null(BYTES_UNIT, unlimited)


def _operations_limit(place: ScratchPlace | None, conditions: _Conditions) -> Limit:
    """Return the smaller of the disk's rating and what the blocks leave of the bandwidth."""
    rating = None if place is None else place.user_operations_per_second
    known: list[tuple[Factor, ...]] = []
    # Several neighbouring blocks may become one request of the disk.
    if rating is not None and conditions.workload in RANDOM:
        if conditions.mixes:
            return _mixed_operations_limit(place, conditions)
        source = f"set by {OPERATIONS.variable}"
        known.append((Factor(name="disk_rate", value=rating, unit=OPERATIONS_UNIT, source=source),))
    try:
        known.append(_bandwidth_in_blocks(place, conditions))
    except Unlimited as unlimited:
        if not known:
            return _null(OPERATIONS_UNIT, unlimited)
    products = [_product(OPERATIONS_UNIT, factors) for factors in known]
    return min(products, key=lambda limit: limit.value or math.inf)


def _mixed_operations_limit(place: ScratchPlace | None, conditions: _Conditions) -> Limit:
    try:
        return _product(OPERATIONS_UNIT, _bandwidth_in_blocks(place, conditions))
    except Unlimited:
        return _null(OPERATIONS_UNIT, Unlimited(_of_one_direction(OPERATIONS)))


def _bandwidth_in_blocks(place: ScratchPlace | None, conditions: _Conditions) -> tuple[Factor, ...]:
    if not conditions.block_bytes:
        raise Unlimited("the trial does not report how large its blocks are (block_bytes)")
    per_byte = Factor(
        name="operations_per_byte",
        value=1 / conditions.block_bytes,
        unit="operation/byte",
        source=f"an operation transfers {conditions.block_bytes:.0f} bytes",
    )
    return (*_bandwidth(place, conditions), per_byte)


def _product(unit: str, factors: tuple[Factor, ...]) -> Limit:
    return Limit(value=math.prod(one.value for one in factors), unit=unit, factors=factors)


def _null(unit: str, why: Unlimited) -> Limit:
    return Limit(value=None, unit=unit, reason=str(why))
