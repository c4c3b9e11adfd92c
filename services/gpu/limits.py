"""Theoretical limits of the gpu workloads, from what the driver says of the device and from
architectures.yaml.

Arithmetic has two: `operations_per_second` at the highest clock, and `operations_per_cycle` of the
whole device, which binds at whatever clock was observed. Memory is bounded by its clock and its
width, copies between host and device by the PCI Express link. Latencies have no limit. Nothing is
known of devices that are no GPU, nor of GPUs without a compute capability.
"""

import math
import re
from dataclasses import dataclass

from hostbench.base.units import human
from hostbench.host import pcie
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import Gpu, Gpus, HostInventory
from hostbench.model.limit import Factor, Limit
from services.gpu.architecture import Rate, rate

OPERATIONS, PER_CYCLE, BYTES = "operations_per_second", "operations_per_cycle", "bytes_per_second"
UNITS = {OPERATIONS: "operation/s", PER_CYCLE: "operation/cycle", BYTES: "byte/s"}
VECTOR = frozenset({"fma", "int_add", "int_mul_add"})
TENSOR, GEMM, DP4A = "tensor", "gemm", "dp4a"
ARITHMETIC = VECTOR | {TENSOR, GEMM, DP4A}
MEMORY = frozenset({"read", "write", "copy", "triad"})
TRANSFERS = frozenset({"host_to_device", "device_to_host", "bidirectional"})
PEERS = "peer_to_peer"
# The metrics that have a limit, or a reason why not, by workload.
_BOUNDED: dict[tuple[str, ...], frozenset[str]] = {
    (OPERATIONS, PER_CYCLE): ARITHMETIC,
    (BYTES,): MEMORY | TRANSFERS | {PEERS},
}
# Of a product of matrices, which unit computes it: these are no tensor core's.
GEMM_VECTOR = frozenset({"fp32"})
OBSERVED_CLOCK = "core_clock_hertz"
TOLERANCE = 0.02
# Less, and the cache has a part in the figure.
CACHES_LEAST = 4
ROUNDING = 0.01
# Where the processor and the GPU are joined by something else than PCI Express.
JOINED = re.compile(r"\bG[BH]\d+\b|Orin|Thor|Xavier")
# As the program writes it: "generation 1 x16 when idle, at most 5 x16".
LINK = re.compile(r"^generation (\d+) x(\d+)(?: when idle, at most (\d+) x\d+)?$")
# How the UUID of a part of a card begins.
MIG = "MIG-"
NOT_LOOKED = "the inventory of this host was written before hostbench looked at its GPUs"


class Unlimited(Exception):
    """Why there is no limit, in one line."""


@dataclass(frozen=True)
class _Device:
    """The device of a trial, as the trial and the inventory tell it."""

    name: str
    capability: str
    units: int
    gpu: Gpu

    @classmethod
    def of(cls, gpus: Gpus | None, facts: dict[str, str]) -> "_Device":
        """Raise Unlimited where too little is known of it."""
        name = facts.get("device_name", "")
        if facts.get("device_type", "gpu") != "gpu":
            raise Unlimited(f"{name or 'the device'} is not a GPU")
        if gpus is None:
            raise Unlimited(NOT_LOOKED)
        gpu = gpus.device(facts.get("device_uuid"))
        if gpu is None:
            raise Unlimited(f"the inventory does not have the device of the trial ({name})")
        capability = facts.get("compute_capability") or gpu.compute_capability or ""
        units = _whole(facts.get("compute_units")) or gpu.compute_units or 0
        return cls(name or gpu.name, capability, units, gpu)


def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """The limits of a trial on `host`, by metric; a workload that has none gives an empty one."""
    bounded = {name for names, of in _BOUNDED.items() if start.workload in of for name in names}
    try:
        if start.workload == PEERS:
            raise Unlimited("the drivers do not report how the cards are joined, by NVLink or PCIe")
        return _of_device(_Device.of(host.gpus, start.facts), start, end) if bounded else {}
    except Unlimited as unlimited:
        reason = str(unlimited)
        return {
            name: Limit(value=None, unit=UNITS[name], reason=reason) for name in sorted(bounded)
        }


def _of_device(device: _Device, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """Raise Unlimited."""
    if start.workload in ARITHMETIC:
        return _arithmetic(device, start, end)
    return _memory(device, start) if start.workload in MEMORY else _transfer(device, start)


def _product(name: str, factors: tuple[Factor, ...], tolerance: float = TOLERANCE) -> Limit:
    value = math.prod(one.value for one in factors)
    return Limit(value=value, unit=UNITS[name], factors=factors, tolerance=tolerance)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


# ---- arithmetic ----


def _arithmetic(device: _Device, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """Raise Unlimited."""
    if not device.capability:
        raise Unlimited(f"{device.name} has no compute capability of CUDA: its rates are not known")
    if not device.units:
        raise Unlimited(f"the driver does not report how many multiprocessors {device.name} has")
    found = _rate(device, start)
    if found.per_clock is None:
        raise Unlimited(f"{device.name}, {start.workload} {_dtype(start)}: {found.reason}")
    factors = (
        Factor(
            name="multiprocessors", value=device.units, unit="multiprocessor", source="the driver"
        ),
        Factor(
            name="operations_per_clock",
            value=found.per_clock,
            unit="operation/cycle/multiprocessor",
            source=found.source,
        ),
    )
    return {
        OPERATIONS: _at_clock(device, factors, end.metrics.get(OBSERVED_CLOCK)),
        PER_CYCLE: _product(PER_CYCLE, factors),
    }


def _dtype(start: StartEvent) -> str:
    return str(start.params.get("dtype", "int8"))


def _rate(device: _Device, start: StartEvent) -> Rate:
    kernel, dtype = start.workload, _dtype(start)
    if kernel != GEMM:
        return rate(device.capability, kernel, dtype, device.name)
    vector = rate(device.capability, "fma", dtype, device.name)
    if dtype in GEMM_VECTOR:
        return vector
    tensor = rate(device.capability, TENSOR, dtype, device.name)
    # Without such tensor cores the vector units compute it.
    return tensor if tensor.exists else vector


def _at_clock(device: _Device, factors: tuple[Factor, ...], observed: float | None) -> Limit:
    """At the highest clock, which cards exceed by themselves where there is room for it."""
    stated = device.gpu.clock_hertz
    if stated is None and observed is None:
        reason = f"the driver does not report the highest clock of {device.name}"
        return Limit(value=None, unit=UNITS[OPERATIONS], reason=reason)
    clock, source = stated or 0.0, "the highest, as the driver reports it"
    if observed is not None and observed > clock:
        above = (
            f", above the {human(stated, 'Hz')} that the driver calls the highest" if stated else ""
        )
        clock, source = observed, f"observed during the trial{above}"
    factor = Factor(name="clock_hertz", value=clock, unit="cycle/s", source=source)
    return _product(OPERATIONS, (*factors, factor))


# ---- memory of the device ----


def _memory(device: _Device, start: StartEvent) -> dict[str, Limit]:
    """Raise Unlimited."""
    gpu = device.gpu
    if (gpu.uuid or "").startswith(MIG):
        raise Unlimited(
            f"{device.name} is a part of a card (MIG), and its share of the memory is unknown"
        )
    if not gpu.memory_clock_hertz or not gpu.bus_width_bits:
        raise Unlimited(
            f"the driver does not report the memory clock and bus width of {device.name}"
        )
    size, cache = start.params.get("size_bytes"), gpu.l2_bytes
    if not cache:
        raise Unlimited("the size of the L2 cache is not known, so it may hold all of it")
    if not isinstance(size, int | float) or size <= 0:
        raise Unlimited("the trial does not report how large its buffers are (size_bytes)")
    if size < CACHES_LEAST * cache * (1 - ROUNDING):
        raise Unlimited(
            f"{human(size, 'byte')} are less than {CACHES_LEAST} times the L2 cache "
            f"({human(cache, 'byte')}), which has a part in the figure"
        )
    ecc = {True: "ECC is on", False: "ECC is off", None: "whether ECC is on is unknown"}[gpu.ecc]
    factors = (
        Factor(
            name="transfers_per_clock",
            value=2.0,
            unit="transfer/cycle",
            source="double data rate: GDDR and HBM at the clock that the driver reports",
        ),
        Factor(
            name="memory_clock_hertz",
            value=gpu.memory_clock_hertz,
            unit="cycle/s",
            source="the highest, as the driver reports it",
        ),
        Factor(
            name="bus_width",
            value=gpu.bus_width_bits / 8,
            unit="byte/transfer",
            source=f"{gpu.bus_width_bits} bits, as the driver reports it; {ecc}, and what it costs "
            "is no part of the limit",
        ),
    )
    return {BYTES: _product(BYTES, factors, _tolerance(size, cache))}


def _tolerance(size: float, cache: int) -> float:
    """Beyond the usual one, what the cache can have served: of each pass at most what it holds."""
    return round(TOLERANCE + cache / (size - cache), 3)


# ---- copies between host and device ----


def _transfer(device: _Device, start: StartEvent) -> dict[str, Limit]:
    """Raise Unlimited."""
    if JOINED.search(device.name):
        raise Unlimited(f"{device.name} is joined to its host by something else than PCI Express")
    speed, lanes, source = _link(device, start.facts.get("pcie", ""))
    factors = [
        Factor(name="lanes", value=lanes, unit="lane", source=source),
        Factor(
            name="transfers_per_second", value=speed * 1e9, unit="transfer/s/lane", source=source
        ),
        Factor(
            name="encoding",
            value=pcie.ENCODING[speed] / 8,
            unit="byte/transfer",
            source=f"{pcie.coding(speed)}, 8 bits are a byte",
        ),
        _payload(device),
    ]
    if start.workload == "bidirectional":
        source = "the figure is of both directions, and each has lanes of its own"
        factors.append(Factor(name="directions", value=2.0, unit="1", source=source))
    return {BYTES: _product(BYTES, tuple(factors))}


def _link(device: _Device, stated: str) -> tuple[float, int, str]:
    """GT/s and lanes under load. NVML asks the card itself, so what it says holds in a virtual
    machine too. An idle card lowers the generation alone: of the lanes those in use count, which
    a slot may have fewer of than the card. Raise Unlimited."""
    found = LINK.search(stated)
    if found is not None:
        now, lanes, most = (int(one) for one in found.groups(default="0"))
        generation = most or now
        if 1 <= generation <= len(pcie.GENERATIONS) and lanes:
            return pcie.GENERATIONS[generation - 1], lanes, f"NVML: {stated}"
    link = device.gpu.link
    if link is None:
        raise Unlimited(device.gpu.link_reason or NOT_LOOKED)
    speed = link.transfers_per_second_here / 1e9
    return speed, link.lanes_here, f"sysfs, {device.gpu.pci}: {speed:g} GT/s x{link.lanes_here}"


def _payload(device: _Device) -> Factor:
    """What the headers of packets leave."""
    payload = device.gpu.link.payload_bytes if device.gpu.link is not None else None
    overhead = f"{pcie.PACKET_OVERHEAD_BYTES} bytes of framing, header and checksum a packet"
    if payload is not None:
        share, source = pcie.payload_share(payload), f"{payload} bytes of data and {overhead}"
    else:
        share = 1.0
        source = (
            "not known how large packets are (root may read it), so none is taken off; of packets "
            f"of 256 bytes {overhead} leave {pcie.payload_share(256):.1%}"
        )
    return Factor(name="payload_share", value=share, unit="1", source=source)
