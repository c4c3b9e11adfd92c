"""What a host is. Whatever could not be read is None."""

import re

from pydantic import BaseModel, ConfigDict

# Makers and products of virtual machines, for processors that do not say that they are virtual.
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
    """One kind of cache; `instances` is how many of it the online CPUs see, `cpu_lists` who shares
    each of them, as the kernel writes it."""

    level: int
    type: str
    size_bytes: int | None
    shared_by_cpus: int | None
    instances: int
    cpu_lists: tuple[str, ...] = ()


class Frequency(HostModel):
    """Who decides the clock, as far as the kernel tells."""

    driver: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    min_hertz: float | None = None
    max_hertz: float | None = None


class Virtualisation(HostModel):
    """`hypervisor`: the CPU says it is virtual. `container`: what marks this as a container."""

    hypervisor: bool | None = None
    vendor: str | None = None
    product: str | None = None
    container: str | None = None

    @property
    def is_guest(self) -> bool:
        """Whether a hypervisor lies below, which may make up the hardware that its guests see."""
        made_by = f"{self.vendor or ''} {self.product or ''}"
        amazon = made_by.lower().startswith(_AMAZON) and ".metal" not in made_by
        return bool(self.hypervisor or amazon or _VIRTUAL.search(made_by))


class CgroupLimits(HostModel):
    """What the control groups allow; `quota_cpus` and `memory_bytes` None: no limit seen."""

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
    """Populated memory channels that are alike, as the firmware has configured them."""

    count: int
    transfers_per_second: float
    width_bits: int

    @property
    def bytes_per_second(self) -> float:
        """What they transfer at most, all together."""
        return self.count * self.transfers_per_second * self.width_bits / 8


class HugePagePool(HostModel):
    """Pages of one size that are set aside: hugetlb."""

    page_bytes: int
    pages: int
    free_pages: int | None = None


class Memory(HostModel):
    """What memory there is, beyond its size.

    `channels` are those with a memory device, None: unknown, for `channels_reason`.
    `channels_source` says where they are from, `channels_wired` counts those that could have one.
    `user_bytes_per_second` is the bandwidth in HOSTBENCH_MEMORY_BANDWIDTH.
    `library_cache_bytes` is what the C library believes the last-level cache of a socket to be.
    `transparent_huge_pages` and `transparent_huge_page_defrag` are the kernel's settings.
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
    """One disk. `rotational` as the device reports it, which means nothing of a virtual one.

    `transport` is how it is attached: nvme, sata, virtio, loop … `link_bytes_per_second` is what
    that carries at most in one direction, `link_source` where that is from; None: `link_reason`
    says why nobody knows. `link_duplex`: it carries as much in the other direction meanwhile.
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
    """What a file system lies on: `number` is MAJ:MIN, `disks` are what it is made of; several
    below LVM or RAID."""

    number: str
    name: str
    disks: tuple[Disk, ...]

    @property
    def link_bytes_per_second(self) -> float | None:
        """What the links of all its disks carry at most in one direction."""
        links = [disk.link_bytes_per_second for disk in self.disks]
        known = [link for link in links if link is not None]
        return sum(known) if known and len(known) == len(links) else None

    @property
    def link_reason(self) -> str | None:
        """Why that is not known."""
        return next((disk.link_reason for disk in self.disks if disk.link_reason), None)


class ScratchPlace(HostModel):
    """Where disk workloads have their files, and what lies below.

    `device` None: unknown, for `device_reason`. `device_source` says how it was found:
    `st_dev`, its mount, or `inferred`: a guess, that bounds nothing. `user_bytes_per_second` and
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
    has a device that no hypervisor has made.

    `link_bits_per_second` is what its line carries at most in one direction, framing included, and
    `link_source` where that is from; None: unknown, for `link_reason`. `duplex`: full or
    half.
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
    """What network there is where it is measured: of a container that has its own, the container's.

    `tcp_timestamps`: the kernel offers them. `user_bytes_per_second` is the payload that the path
    to other hosts carries in one direction, from HOSTBENCH_NET_BANDWIDTH.
    """

    interfaces: tuple[Interface, ...] = ()
    tcp_timestamps: bool | None = None
    user_bytes_per_second: float | None = None

    def interface(self, name: str | None) -> Interface | None:
        """The one of this name."""
        return next((one for one in self.interfaces if one.name == name), None)


class PcieLink(HostModel):
    """What a PCI Express device is attached by: transfers per second and lane, and lanes, as they
    are now and as the device has them at most.

    An idle device may slow its link down. `port_…` are what the ports above it have at most, the
    least of them; None: there is none, or it does not say. `payload_bytes` is what a packet carries
    at most, None: only root may read it.
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
        """Of a lane, as fast as both ends can."""
        port = self.port_transfers_per_second_most
        return min(self.transfers_per_second_most, port or self.transfers_per_second_most)

    @property
    def lanes_here(self) -> int:
        """Those that are in use. An idle device keeps its lanes."""
        return min(self.lanes, self.lanes_most)


class GpuFacts(HostModel):
    """A device that gpu-bench can measure, by its driver; None: the driver does not report it.

    `index` is its number in `gpu-bench --list-devices`, `backend` the one of `backends` (cuda,
    opencl) that is used unless a case says otherwise. `type`: gpu, cpu or other.
    `compute_capability` is CUDA's, such as 9.0; `compute_units` are streaming multiprocessors where
    it has one. `clock_hertz` and `memory_clock_hertz` are the highest. `fp64`, `fp16`: it has such
    arithmetic.
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
    """A device and its PCI Express link; None: unknown, for `link_reason`."""

    link: PcieLink | None = None
    link_reason: str | None = None


class Gpus(HostModel):
    """What GPUs there are where it is measured: of a container those that it was given.

    `looked` has the question to each driver and its answer, also where devices were found.
    `reason`: why the look failed, None: it did not.
    """

    devices: tuple[Gpu, ...] = ()
    looked: tuple[str, ...] = ()
    reason: str | None = None

    def device(self, uuid: str | None, index: int | None = None) -> Gpu | None:
        """The one of this UUID, else of this index."""
        by_uuid = (one for one in self.devices if uuid and one.uuid == uuid)
        by_index = (one for one in self.devices if not uuid and one.index == index)
        return next(by_uuid, None) or next(by_index, None)


class Boot(HostModel):
    """A moment by the clock that counts from the host's boot and that nobody can set, so that it
    tells which of two jobs came first. `id` is a hash of the boot's."""

    id: str
    since_s: float


class HostInventory(HostModel):
    """One host at the start of a job.

    `machine` is a hash of the machine id: the same host keeps it, and it cannot be turned back.
    `firmware` is the maker's version and date of the BIOS. `allowed_cpus` is the affinity of the
    process that runs the benchmark. `memory` None: written by a version that did not look.
    `scratch`, `network` and `gpus` None: so too, or by a service of
    another subsystem.
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
        """What must be equal for figures of two sessions to stand side by side."""
        return (self.machine or self.hostname, self.cpu.model_name, self.kernel)
