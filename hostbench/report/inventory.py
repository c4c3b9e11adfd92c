"""The sections on the host and the far host."""

from hostbench.base.units import binary_bytes, human, plural
from hostbench.model.host import (
    Cpu,
    Disk,
    Gpu,
    Gpus,
    HostInventory,
    Interface,
    Memory,
    Network,
    PcieLink,
    ScratchPlace,
)
from hostbench.model.result import FarHostRecord
from hostbench.report.content import (
    Block,
    Code,
    Column,
    Facts,
    Fold,
    Paragraph,
    Part,
    RowGroup,
    Section,
    Table,
    Text,
)

UNKNOWN = "not known"
DOWN = "down"
# A host of containers has many interfaces that no trial uses.
INTERFACES_SHOWN = 16


def host_section(host: HostInventory) -> Section:
    """Return the section with the whole inventory."""
    return Section("host", "Host", _inventory(host))


def far_host_section(far: FarHostRecord) -> Section:
    """Return the section of a job's second host: what ran there, between which addresses, and its
    inventory."""
    program = f"{far.program.name} {far.program.version}"
    facts: tuple[tuple[str, Text], ...] = (
        ("Its part", "the far ends of the network's tests"),
        ("Program", (f"{program}, SHA-256 ", Code(far.program.sha256))),
        ("Its address", Code(far.address)),
        ("Reached from", Code(far.near_address)),
    )
    blocks = (Facts(facts), *_inventory(far.inventory))
    return Section("far-host", "Far host", blocks, in_brief=False)


def _inventory(host: HostInventory) -> tuple[Block, ...]:
    return (
        Facts(_system(host)),
        Part("Processor", _processor(host.cpu)),
        Part("Caches", (_caches(host),)),
        *_memory(host.memory),
        *_scratch(host.scratch),
        *_network(host.network),
        *_gpus(host.gpus),
        Part("Clock and limits", (Facts(_clock(host) + _limits(host)),)),
        Part("Mitigations", (_mitigations(host),)),
    )


def _system(host: HostInventory) -> tuple[tuple[str, Text], ...]:
    virtualisation = host.virtualisation
    made_by = " ".join(word for word in (virtualisation.vendor, virtualisation.product) if word)
    return (
        ("Name", Code(host.hostname)),
        ("Machine", Code(host.machine) if host.machine else UNKNOWN),
        ("Distribution", _shown(host.distribution)),
        ("Kernel", Code(host.kernel)),
        ("Memory", _bytes(host.memory_bytes)),
        ("Made by", made_by or UNKNOWN),
        ("Virtual machine", _yes_no(virtualisation.hypervisor)),
        ("Container", virtualisation.container or "none seen"),
    )


def _processor(cpu: Cpu) -> tuple[Block, ...]:
    names: list[tuple[str, Text]] = [
        ("Model", _shown(cpu.model_name)),
        ("Architecture", cpu.architecture),
    ]
    numbers = {
        "Vendor": cpu.vendor,
        "Family": cpu.family,
        "Model number": cpu.model,
        "Stepping": cpu.stepping,
        "Implementer": cpu.implementer,
        "Variant": cpu.variant,
        "Part": cpu.part,
        "Revision": cpu.revision,
    }
    # x86 and Arm processors identify themselves by different numbers.
    names += [(name, f"{value}") for name, value in numbers.items() if value is not None]
    names += [
        ("Microcode", _shown(cpu.microcode)),
        ("CPUs online", _shown(cpu.online_cpus)),
        ("Cores", _shown(cpu.cores)),
        ("Sockets", _shown(cpu.sockets)),
        ("NUMA nodes", _shown(cpu.numa_nodes)),
        ("SMT", _yes_no(cpu.smt_active, "active", "not active")),
    ]
    for kind, cpus in (
        ("Performance CPUs", cpu.performance_cpus),
        ("Efficiency CPUs", cpu.efficiency_cpus),
    ):
        if cpus is not None:
            names.append((kind, cpu_list(cpus)))
    flags = Fold(f"{len(cpu.flags)} flags", (Paragraph(Code(" ".join(cpu.flags))),), on_paper=True)
    return (Facts(tuple(names)), *((flags,) if cpu.flags else ()))


def _caches(host: HostInventory) -> Block:
    columns = (
        Column("cache"),
        Column("size", figures=True),
        Column("shared by", figures=True),
        Column("instances", figures=True),
    )
    rows = tuple(
        (
            f"L{cache.level} {cache.type}",
            _bytes(cache.size_bytes),
            UNKNOWN if cache.shared_by_cpus is None else plural(cache.shared_by_cpus, "CPU"),
            str(cache.instances),
        )
        for cache in host.caches
    )
    if not rows:
        return Paragraph("The kernel names no caches.")
    return Table("Caches of the online CPUs", columns, (RowGroup(None, rows),))


def _memory(memory: Memory | None) -> tuple[Block, ...]:
    if memory is None:
        return ()
    bandwidth = memory.user_bytes_per_second
    facts: list[tuple[str, Text]] = [
        ("Channels", memory.channels_source or memory.channels_reason or UNKNOWN),
        ("Bandwidth set", _rating(bandwidth, "byte/s")),
        ("Last-level cache, C library", _bytes(memory.library_cache_bytes)),
        ("Transparent huge pages", _shown(memory.transparent_huge_pages)),
        ("Their defragmentation", _shown(memory.transparent_huge_page_defrag)),
    ]
    facts += [
        (f"Pool of {_bytes(pool.page_bytes)} pages", plural(pool.pages, "page"))
        for pool in memory.huge_page_pools
    ]
    facts += [
        (f"NUMA node {node.node}", f"{_bytes(node.memory_bytes)}, CPUs {cpu_list(node.cpus)}")
        for node in memory.nodes
    ]
    return (Part("Memory", (Facts(tuple(facts)),)),)


def _scratch(scratch: ScratchPlace | None) -> tuple[Block, ...]:
    """Return the part on where disks were measured."""
    if scratch is None:
        return ()
    device = scratch.device
    found = f"{device.name} ({device.number}), from {scratch.device_source}" if device else ""
    link = device.link_bytes_per_second if device else None
    why = device.link_reason if device else scratch.device_reason
    facts: list[tuple[str, Text]] = [
        ("Directory", Code(scratch.directory)),
        ("File system", _shown(scratch.file_system)),
        ("Its size", _bytes(scratch.size_bytes)),
        ("Free at the start", _bytes(scratch.free_bytes)),
        ("Device", found or scratch.device_reason or UNKNOWN),
        *((f"Disk {disk.name}", _disk(disk)) for disk in (device.disks if device else ())),
        ("Link", human(link, "byte/s") if link is not None else why or UNKNOWN),
        ("Throughput set", _rating(scratch.user_bytes_per_second, "byte/s")),
        ("Operations set", _rating(scratch.user_operations_per_second, "operation/s")),
    ]
    return (Part("Disk", (Facts(tuple(facts)),)),)


def _disk(disk: Disk) -> str:
    """Return what the kernel knows about a disk. Whether it rotates is what the device reports,
    which means nothing for a virtual disk."""
    turns = _yes_no(disk.rotational, "reported to rotate", "reported not to rotate")
    words = (disk.model, disk.transport, turns if disk.rotational is not None else None)
    return ", ".join(word for word in words if word) or UNKNOWN


def _network(network: Network | None) -> tuple[Block, ...]:
    """Return the part on interfaces."""
    if network is None:
        return ()
    facts: tuple[tuple[str, Text], ...] = (
        ("TCP timestamps", _yes_no(network.tcp_timestamps, "offered", "not offered")),
        ("Bandwidth set", _rating(network.user_bytes_per_second, "byte/s")),
    )
    columns = (
        Column("interface"),
        Column("kind"),
        Column("driver"),
        Column("state"),
        Column("MTU", figures=True),
        Column("queues", figures=True),
        Column("link"),
    )
    shown = [one for one in network.interfaces if one.physical or one.state != DOWN]
    rows = tuple(_interface(one) for one in shown[:INTERFACES_SHOWN])
    left_out = len(shown) - len(rows)
    if left_out:
        facts = (*facts, ("Further interfaces", str(left_out)))
    table = Table("Network interfaces", columns, (RowGroup(None, rows),))
    return (Part("Network", (Facts(facts), *((table,) if rows else ()))),)


def _interface(one: Interface) -> tuple[Text, ...]:
    link = one.link_bits_per_second
    speed = f"{human(link, 'bit/s')}, {one.link_source}" if link is not None else one.link_reason
    queues = (one.receive_queues, one.transmit_queues)
    return (
        Code(one.name),
        one.kind if one.physical else f"{one.kind}, virtual",
        _shown(one.driver),
        _shown(one.state),
        _shown(one.mtu_bytes),
        " / ".join("?" if count is None else str(count) for count in queues),
        speed or UNKNOWN,
    )


def _gpus(gpus: Gpus | None) -> tuple[Block, ...]:
    """Return the part on GPUs, with their drivers' answers."""
    if gpus is None:
        return ()
    parts = tuple(Part(f"GPU {one.index}", (Facts(_gpu(one)),)) for one in gpus.devices)
    answers = tuple(("Looked for", text) for text in (*gpus.looked, gpus.reason) if text)
    return (Part("GPUs", (*((Facts(answers),) if answers else ()), *parts)),)


def _gpu(one: Gpu) -> tuple[tuple[str, Text], ...]:
    kind = one.name if one.type == "gpu" else f"{one.name}, which is not a GPU ({one.type})"
    link = _link(one.link) if one.link is not None else one.link_reason or UNKNOWN
    bus = "" if one.bus_width_bits is None else f", {one.bus_width_bits} bits"
    return (
        ("Name", kind),
        ("UUID", Code(one.uuid) if one.uuid else UNKNOWN),
        ("PCI address", Code(one.pci) if one.pci else UNKNOWN),
        ("Driver", f"{one.backend}, {one.driver or 'version not known'}"),
        ("Compute capability", _shown(one.compute_capability)),
        ("Compute units", _shown(one.compute_units)),
        ("Highest clock", _hertz(one.clock_hertz)),
        ("Highest memory clock", f"{_hertz(one.memory_clock_hertz)}{bus}"),
        ("L2 cache", _bytes(one.l2_bytes)),
        ("Memory", _bytes(one.memory_bytes)),
        ("ECC", _yes_no(one.ecc, "on", "off")),
        ("PCI Express", link),
    )


def _link(link: PcieLink) -> str:
    now, most = link.transfers_per_second / 1e9, link.transfers_per_second_most / 1e9
    return (
        f"{now:g} GT/s x{link.lanes} at the time of the inventory; the card has {most:g} GT/s "
        f"x{link.lanes_most}"
    )


def _rating(value: float | None, unit: str) -> str:
    return "none" if value is None else human(value, unit)


def _clock(host: HostInventory) -> tuple[tuple[str, Text], ...]:
    frequency = host.frequency
    return (
        ("Driver", _shown(frequency.driver)),
        ("Governor", _shown(frequency.governor)),
        ("Turbo", _yes_no(frequency.turbo, "on", "off")),
        ("Lowest clock", _hertz(frequency.min_hertz)),
        ("Highest clock", _hertz(frequency.max_hertz)),
    )


def _limits(host: HostInventory) -> tuple[tuple[str, Text], ...]:
    cgroup = host.cgroup
    quota = "none" if cgroup.quota_cpus is None else f"{cgroup.quota_cpus:g} CPUs"
    memory = "none" if cgroup.memory_bytes is None else _bytes(cgroup.memory_bytes)
    return (
        ("CPUs allowed", cpu_list(host.allowed_cpus)),
        ("Control groups", UNKNOWN if cgroup.version is None else f"version {cgroup.version}"),
        ("CPU quota", quota),
        ("Memory limit", memory),
        ("CPU set", _shown(cgroup.cpuset)),
    )


def _mitigations(host: HostInventory) -> Block:
    rows = tuple((name, text) for name, text in sorted(host.mitigations.items()))
    if not rows:
        return Paragraph("The kernel names none.")
    columns = (Column("vulnerability"), Column("what the kernel says"))
    table = Table("Mitigations", columns, (RowGroup(None, rows),))
    return Fold(
        f"{len(rows)} vulnerabilities and what the kernel does about them", (table,), on_paper=True
    )


def cpu_list(cpus: tuple[int, ...]) -> str:
    """Return `0-3,8` for (0, 1, 2, 3, 8)."""
    parts: list[str] = []
    first = last = None
    for cpu in sorted(cpus):
        if last is not None and cpu == last + 1:
            last = cpu
            parts[-1] = f"{first}-{last}"
        else:
            first = last = cpu
            parts.append(str(cpu))
    return ",".join(parts) or "none"


def _shown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _yes_no(value: bool | None, yes: str = "yes", no: str = "no") -> str:
    return UNKNOWN if value is None else (yes if value else no)


def _hertz(value: float | None) -> str:
    return UNKNOWN if value is None else human(value, "Hz")


def _bytes(value: int | None) -> str:
    return UNKNOWN if value is None else binary_bytes(value)
