"""What a host is. Whatever could not be read is None."""

from pydantic import BaseModel, ConfigDict


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

    `channels` are those with a memory device, None: `channels_reason` says why nobody knows.
    `channels_source` says where they are from, `channels_wired` counts those that could have one.
    `user_bytes_per_second` is the bandwidth that HOSTBENCH_MEMORY_BANDWIDTH told.
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


class HostInventory(HostModel):
    """One host at the start of a job.

    `machine` is a hash of the machine id: the same host keeps it, nobody can turn it back.
    `allowed_cpus` is the affinity of the process that runs the benchmark. `memory` None: written
    by a version that did not look.
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
    memory: Memory | None = None

    @property
    def identity(self) -> tuple[str, str | None, str]:
        """What must be equal for figures of two sessions to stand side by side."""
        return (self.machine or self.hostname, self.cpu.model_name, self.kernel)
