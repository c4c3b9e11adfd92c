"""The inventory of a host. What could not be read is None."""

import re

from pydantic import BaseModel, ConfigDict

# Makers and products of virtual machines, for processors that do not report that they are virtual.
_VIRTUAL = re.compile(
    r"qemu|kvm|bochs|vmware|virtualbox|innotek|parallels|xen|virtual machine|google compute"
    r"|openstack|bhyve|firecracker|cloud hypervisor|alibaba cloud ecs|digitalocean",
    re.IGNORECASE,
)
_AMAZON = "amazon ec2"


class HostModel(BaseModel):
    """Base of the inventory."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Cpu(HostModel):
    """The processor. x86 has vendor, family, model, stepping; Arm has implementer and part.

    `performance_cpus` and `efficiency_cpus` are known on hybrid processors only.
    """

    architecture: str
    model_name: str | None = None
    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    implementer: int | None = None
    variant: int | None = None
    part: int | None = None
    revision: int | None = None
    microcode: str | None = None
    flags: tuple[str, ...] = ()
    online_cpus: int | None = None
    cores: int | None = None
    sockets: int | None = None
    smt_active: bool | None = None
    numa_nodes: int | None = None
    performance_cpus: tuple[int, ...] | None = None
    efficiency_cpus: tuple[int, ...] | None = None


class Cache(HostModel):
    """One kind of cache. `instances` is how many of them the online CPUs see; `cpu_lists` are the
    CPUs that share each, as the kernel writes them."""

    level: int
    type: str
    size_bytes: int | None
    shared_by_cpus: int | None
    instances: int
    cpu_lists: tuple[str, ...] = ()


class Frequency(HostModel):
    """What controls the clock, as far as the kernel reports it."""

    driver: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    min_hertz: float | None = None
    max_hertz: float | None = None


class Virtualisation(HostModel):
    """`hypervisor`: the CPU reports that it is virtual. `container`: the evidence that this is a
    container."""

    hypervisor: bool | None = None
    vendor: str | None = None
    product: str | None = None
    container: str | None = None

    @property
    def is_guest(self) -> bool:
        """Whether the host runs on a hypervisor, which may invent the hardware that its guests
        see."""
        made_by = f"{self.vendor or ''} {self.product or ''}"
        amazon = made_by.lower().startswith(_AMAZON) and ".metal" not in made_by
        return bool(self.hypervisor or amazon or _VIRTUAL.search(made_by))


class CgroupLimits(HostModel):
    """What the control groups allow. `quota_cpus` and `memory_bytes` None: no limit seen."""

    version: int | None = None
    quota_cpus: float | None = None
    memory_bytes: int | None = None
    cpuset: str | None = None


class NumaNode(HostModel):
    """A NUMA node with memory, CPUs, or both."""

    node: int
    memory_bytes: int | None = None
    cpus: tuple[int, ...] = ()


class Channels(HostModel):
    """Populated memory channels of one kind, as the firmware has configured them."""

    count: int
    transfers_per_second: float
    width_bits: int

    @property
    def bytes_per_second(self) -> float:
        """The most that they can transfer together."""
        return self.count * self.transfers_per_second * self.width_bits / 8


class HugePagePool(HostModel):
    """Reserved huge pages of one size (hugetlb)."""

    page_bytes: int
    pages: int
    free_pages: int | None = None


class Memory(HostModel):
    """The memory of the host, beyond its size.

    - `channels`: channels with a memory device; None: unknown, and `channels_reason` says why.
    - `channels_source`: where they were read; `channels_wired`: how many channels could have a
      device.
    - `user_bytes_per_second`: the bandwidth in HOSTBENCH_MEMORY_BANDWIDTH.
    - `library_cache_bytes`: the C library's value for the last-level cache of a socket.
    - `transparent_huge_pages`, `transparent_huge_page_defrag`: the kernel's settings.
    """

    nodes: tuple[NumaNode, ...] = ()
    channels: tuple[Channels, ...] | None = None
    channels_source: str | None = None
    channels_reason: str | None = None
    channels_wired: int | None = None
    user_bytes_per_second: float | None = None
    library_cache_bytes: int | None = None
    transparent_huge_pages: str | None = None
    transparent_huge_page_defrag: str | None = None
    huge_page_pools: tuple[HugePagePool, ...] = ()


class Disk(HostModel):
    """One disk. `rotational` is what the device reports; it means nothing for a virtual disk.

    - `transport`: how it is attached: nvme, sata, virtio, loop …
    - `link_bytes_per_second`: the most that its link carries in one direction; `link_source`: where
      that was read. None: unknown, and `link_reason` says why.
    - `link_duplex`: the link carries as much in the other direction at the same time.
    """

    name: str
    model: str | None = None
    transport: str | None = None
    rotational: bool | None = None
    link_bytes_per_second: float | None = None
    link_duplex: bool = False
    link_source: str | None = None
    link_reason: str | None = None


class BlockDevice(HostModel):
    """What a file system lies on. `number` is MAJ:MIN; `disks` are the disks below, several with
    LVM or RAID."""

    number: str
    name: str
    disks: tuple[Disk, ...]

    @property
    def link_bytes_per_second(self) -> float | None:
        """The most that the links of all its disks carry in one direction; None if one is
        unknown."""
        links = [disk.link_bytes_per_second for disk in self.disks]
        known = [link for link in links if link is not None]
        return sum(known) if known and len(known) == len(links) else None

    @property
    def link_reason(self) -> str | None:
        """Why that is unknown."""
        return next((disk.link_reason for disk in self.disks if disk.link_reason), None)


class ScratchPlace(HostModel):
    """The directory of the disk workloads' files, and what lies below it.

    `device` None: unknown, and `device_reason` says why. `device_source` is how it was found:
    `st_dev`, its mount, or `inferred`, a guess that gives no limit. `user_bytes_per_second` and
    `user_operations_per_second` are HOSTBENCH_DISK_BANDWIDTH and HOSTBENCH_DISK_IOPS.
    """

    directory: str
    file_system: str | None = None
    size_bytes: int | None = None
    free_bytes: int | None = None
    device: BlockDevice | None = None
    device_source: str | None = None
    device_reason: str | None = None
    user_bytes_per_second: float | None = None
    user_operations_per_second: float | None = None


class Interface(HostModel):
    """A network interface. `kind`: ethernet, loopback, veth, virtio, bridge, wlan … `physical`: it
    has a real device, not one that a hypervisor made.

    `link_bits_per_second` is the most that its line carries in one direction, framing included;
    `link_source` is where that was read. None: unknown, and `link_reason` says why. `duplex`: full
    or half.
    """

    name: str
    kind: str
    physical: bool
    driver: str | None = None
    state: str | None = None
    mtu_bytes: int | None = None
    duplex: str | None = None
    receive_queues: int | None = None
    transmit_queues: int | None = None
    link_bits_per_second: float | None = None
    link_source: str | None = None
    link_reason: str | None = None


class Network(HostModel):
    """The network as the benchmark sees it; in a container with a network of its own, the
    container's.

    `tcp_timestamps`: the kernel offers them. `user_bytes_per_second` is the payload that the path
    to other hosts carries in one direction, from HOSTBENCH_NET_BANDWIDTH.
    """

    interfaces: tuple[Interface, ...] = ()
    tcp_timestamps: bool | None = None
    user_bytes_per_second: float | None = None

    def interface(self, name: str | None) -> Interface | None:
        """Return the interface of this name, or None."""
        return next((one for one in self.interfaces if one.name == name), None)


class PcieLink(HostModel):
    """The PCI Express link of a device: its lanes and the transfers per second of each, now and at
    most.

    An idle device may slow down its link. `port_…` are the lowest maximum values of the ports above
    it; None: there is no port, or it does not report them. `payload_bytes` is the most that a
    packet carries; None: only root may read it.
    """

    transfers_per_second: float
    lanes: int
    transfers_per_second_most: float
    lanes_most: int
    port_transfers_per_second_most: float | None = None
    port_lanes_most: int | None = None
    payload_bytes: int | None = None

    @property
    def transfers_per_second_here(self) -> float:
        """Transfers per second of a lane, as fast as both ends can."""
        port = self.port_transfers_per_second_most
        return min(self.transfers_per_second_most, port or self.transfers_per_second_most)

    @property
    def lanes_here(self) -> int:
        """The lanes in use. An idle device keeps its lanes."""
        return min(self.lanes, self.lanes_most)


class GpuFacts(HostModel):
    """A device that gpu-bench can measure, as its driver reports it; None: the driver does not
    report it.

    - `index`: its number in `gpu-bench --list-devices`.
    - `backend`: the one of `backends` (cuda, opencl) that is used unless a case names another.
    - `type`: gpu, cpu or other.
    - `compute_capability`: CUDA's, such as 9.0.
    - `compute_units`: streaming multiprocessors on devices that have them.
    - `clock_hertz`, `memory_clock_hertz`: the highest clocks.
    - `fp64`, `fp16`: it supports such arithmetic.
    """

    index: int
    backend: str
    backends: tuple[str, ...] = ()
    name: str
    uuid: str | None = None
    pci: str | None = None
    driver: str | None = None
    vendor: str | None = None
    type: str = "gpu"
    compute_capability: str | None = None
    compute_units: int | None = None
    clock_hertz: float | None = None
    memory_clock_hertz: float | None = None
    bus_width_bits: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    ecc: bool | None = None
    fp64: bool | None = None
    fp16: bool | None = None


class Gpu(GpuFacts):
    """A device and its PCI Express link; None: unknown, and `link_reason` says why."""

    link: PcieLink | None = None
    link_reason: str | None = None


class Gpus(HostModel):
    """The GPUs that the benchmark sees; in a container, those passed to the container.

    `looked` lists the query to each driver and its answer, even if devices were found. `reason`:
    why the search failed; None: it did not.
    """

    devices: tuple[Gpu, ...] = ()
    looked: tuple[str, ...] = ()
    reason: str | None = None

    def device(self, uuid: str | None, index: int | None = None) -> Gpu | None:
        """Return the device of this UUID; without one, the device of this index."""
        by_uuid = (one for one in self.devices if uuid and one.uuid == uuid)
        by_index = (one for one in self.devices if not uuid and one.index == index)
        return next(by_uuid, None) or next(by_index, None)


class Boot(HostModel):
    """A moment in seconds since the host's boot, by a clock that cannot be set, so it shows which
    of two jobs came first. `id` is a hash of the boot id."""

    id: str
    since_s: float


class HostInventory(HostModel):
    """One host at the start of a job.

    - `machine`: a hash of the machine id. It stays the same on a host, and the id cannot be
      recovered from it.
    - `firmware`: the maker's version and date of the BIOS.
    - `allowed_cpus`: the affinity of the process that runs the benchmark.
    - `memory` None: written by a version that did not read it. `scratch`, `network`, `gpus` None:
      likewise, or written by a service of another subsystem.
    """

    hostname: str
    machine: str | None
    kernel: str
    distribution: str | None
    cpu: Cpu
    allowed_cpus: tuple[int, ...]
    caches: tuple[Cache, ...]
    memory_bytes: int | None
    frequency: Frequency
    mitigations: dict[str, str]
    virtualisation: Virtualisation
    cgroup: CgroupLimits
    firmware: str | None = None
    memory: Memory | None = None
    scratch: ScratchPlace | None = None
    network: Network | None = None
    gpus: Gpus | None = None

    @property
    def identity(self) -> tuple[str, str | None, str]:
        """What must be equal for figures of two sessions to be comparable."""
        return (self.machine or self.hostname, self.cpu.model_name, self.kernel)
