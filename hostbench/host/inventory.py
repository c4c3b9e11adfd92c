"""The inventory of this host, from /proc and /sys. What cannot be read is None, never an error."""

import hashlib
import os
import platform
import re
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from hostbench.base.errors import UsageError, shown
from hostbench.base.files import cpu_list, first_text, read_number, read_text, whole_number
from hostbench.host.disk import scratch_place
from hostbench.host.gpu import gpus
from hostbench.host.memory import memory
from hostbench.host.network import network as host_network
from hostbench.model.host import (
    Boot,
    Cache,
    CgroupLimits,
    Cpu,
    Frequency,
    HostInventory,
    Virtualisation,
)

# cgroup v1 writes "no limit" as the largest multiple of a page below 2^63.
V1_UNLIMITED_BYTES = 1 << 62
_CONTAINER_MARKS = ((".dockerenv", "docker"), ("run/.containerenv", "podman"))
# include/linux/proc_ns.h
_FIRST_NAMESPACES = {
    "cgroup": 0xEFFFFFFB,
    "pid": 0xEFFFFFFC,
    "uts": 0xEFFFFFFE,
    "ipc": 0xEFFFFFFF,
}
_Number = TypeVar("_Number", int, float)
MACHINE_VARIABLE = "HOSTBENCH_MACHINE"
_MACHINE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_CONTAINER_CGROUP = re.compile(r"docker|containerd|kubepods|libpod|lxc|garden")


def inventory(
    root: Path = Path("/"), *, scratch: bool = True, network: bool = True, gpu: bool = False
) -> HostInventory:
    """Return the inventory of this host. `root` stands for / in tests.

    `scratch`: include what lies below the scratch directory; `network`: include the interfaces.
    Both differ in every container. `gpu`: include the GPUs, for which their drivers are started.

    Raise UsageError when a rating that the user set, such as HOSTBENCH_MEMORY_BANDWIDTH, makes no
    sense.
    """
    fields = _cpuinfo(root)
    virtualisation = _virtualisation(root, fields)
    allowed = os.sched_getaffinity(0)
    return HostInventory(
        hostname=socket.gethostname(),
        machine=_machine(root),
        kernel=platform.release(),
        distribution=_distribution(root),
        cpu=_cpu(root, fields),
        allowed_cpus=tuple(sorted(allowed)),
        caches=_caches(root),
        memory_bytes=_memory_bytes(root),
        frequency=_frequency(root),
        mitigations=_mitigations(root),
        virtualisation=virtualisation,
        cgroup=_cgroup(root),
        firmware=_firmware(root),
        memory=memory(root, virtualisation),
        scratch=scratch_place(root, virtualisation) if scratch else None,
        network=host_network(root, virtualisation) if network else None,
        gpus=gpus(root, virtualisation) if gpu else None,
    )


def boot(root: Path = Path("/")) -> Boot | None:
    """Return the present moment since the host's boot, or None if the kernel does not identify the
    boot."""
    boot_id = read_text(root / "proc/sys/kernel/random/boot_id")
    if boot_id is None:
        return None
    return Boot(id=boot_hash(boot_id), since_s=time.clock_gettime(time.CLOCK_BOOTTIME))


def merged_inventory(seen: Sequence[HostInventory]) -> HostInventory:
    """Return one inventory from several services of a host: the first, with the scratch directory,
    the network and the GPUs of the service that has them."""
    place = next((one.scratch for one in seen if one.scratch is not None), None)
    network = next((one.network for one in seen if one.network is not None), None)
    found = next((one.gpus for one in seen if one.gpus is not None), None)
    return seen[0].model_copy(update={"scratch": place, "network": network, "gpus": found})


def _machine(root: Path) -> str | None:
    """Return a hash of the machine id, which itself should not leave the machine: machine-id(5).

    A container has no id or one of its image: who starts it may state the hash of its machine's.
    """
    stated = os.environ.get(MACHINE_VARIABLE)
    if stated:
        if not _MACHINE.fullmatch(stated):
            raise UsageError(
                f"{MACHINE_VARIABLE} {shown(stated)} is not a hash of a machine id; give 16 "
                "hexadecimal digits as in host.machine of a result, or unset it"
            )
        return stated
    machine_id = read_text(root / "etc/machine-id")
    return None if machine_id is None else machine_hash(machine_id)


def machine_hash(machine_id: str) -> str:
    """Return what identifies a machine in results."""
    return _hash(machine_id.strip())


def boot_hash(boot_id: str) -> str:
    """Return what identifies a boot in results."""
    return _hash(boot_id.strip())


def _hash(identity: str) -> str:
    return hashlib.sha256(b"hostbench:" + identity.encode()).hexdigest()[:16]


def _firmware(root: Path) -> str | None:
    """Return the BIOS in words, such as `SeaBIOS 1.16.3 of 04/01/2014`."""
    parts = (read_text(root / f"sys/class/dmi/id/bios_{part}") for part in ("vendor", "version"))
    name = " ".join(part for part in parts if part)
    date = read_text(root / "sys/class/dmi/id/bios_date")
    return f"{name} of {date}" if name and date else name or None


def _distribution(root: Path) -> str | None:
    text = read_text(root / "etc/os-release") or ""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return match[1] if match else None


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the fields of the first processor."""
    text = read_text(root / "proc/cpuinfo") or ""
    fields = {}
    for line in text.split("\n\n")[0].splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields[name.strip().lower()] = value.strip()
    return fields


def _cpu(root: Path, fields: dict[str, str]) -> Cpu:
    online = cpu_directories(root)
    packages = [read_text(cpu / "topology/physical_package_id") for cpu in online]
    cores = [read_text(cpu / "topology/core_id") for cpu in online]
    smt = read_text(root / "sys/devices/system/cpu/smt/active")
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    known = bool(online) and None not in packages and None not in cores
    return Cpu(
        architecture=platform.machine(),
        model_name=fields.get("model name"),
        vendor=fields.get("vendor_id"),
        family=whole_number(fields.get("cpu family")),
        model=whole_number(fields.get("model")),
        stepping=whole_number(fields.get("stepping")),
        implementer=whole_number(fields.get("cpu implementer")),
        variant=whole_number(fields.get("cpu variant")),
        part=whole_number(fields.get("cpu part")),
        revision=whole_number(fields.get("cpu revision")),
        microcode=fields.get("microcode"),
        flags=tuple(sorted((fields.get("flags") or fields.get("features") or "").split())),
        online_cpus=len(online) or None,
        cores=len(set(zip(packages, cores, strict=True))) if known else None,
        sockets=len(set(packages)) if known else None,
        smt_active=None if smt is None else smt == "1",
        numa_nodes=len(nodes) or None,
        # Linux has these two performance counters on hybrid processors only.
        performance_cpus=cpu_list(read_text(root / "sys/devices/cpu_core/cpus")),
        efficiency_cpus=cpu_list(read_text(root / "sys/devices/cpu_atom/cpus")),
    )


def cpu_directories(root: Path) -> list[Path]:
    """Return the sysfs directories of the online CPUs; an offline CPU has no topology."""
    directories = (root / "sys/devices/system/cpu").glob("cpu[0-9]*")
    return sorted(path for path in directories if (path / "topology").is_dir())


def _caches(root: Path) -> tuple[Cache, ...]:
    """Return one entry for each level, type and size. An instance is identified by the CPUs that
    share it."""
    seen: dict[tuple[int, str, int | None, int | None], set[str]] = {}
    for cpu in cpu_directories(root):
        for index in sorted((cpu / "cache").glob("index[0-9]*")):
            level, kind = read_number(index / "level"), read_text(index / "type")
            if level is None or kind is None:
                continue
            shared = read_text(index / "shared_cpu_list")
            sharers = cpu_list(shared)
            size = _cache_bytes(read_text(index / "size"))
            key = (level, kind, size, len(sharers) if sharers else None)
            seen.setdefault(key, set()).add(shared or cpu.name.removeprefix("cpu"))
    return tuple(
        Cache(
            level=key[0],
            type=key[1],
            size_bytes=key[2],
            shared_by_cpus=key[3],
            instances=len(at),
            cpu_lists=tuple(sorted(at)),
        )
        for key, at in sorted(seen.items(), key=lambda item: (item[0][0], item[0][1]))
    )


def _cache_bytes(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG]?)", text or "")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def _memory_bytes(root: Path) -> int | None:
    meminfo = read_text(root / "proc/meminfo") or ""
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _frequency(root: Path) -> Frequency:
    cpus = root / "sys/devices/system/cpu"
    policies = sorted((cpus / "cpufreq").glob("policy[0-9]*"))
    governors = Counter(read_text(policy / "scaling_governor") for policy in policies)
    policy = policies[0] if policies else cpus / "cpu0/cpufreq"
    low, high = read_number(policy / "cpuinfo_min_freq"), read_number(policy / "cpuinfo_max_freq")
    return Frequency(
        driver=read_text(policy / "scaling_driver"),
        governor=", ".join(sorted(name for name in governors if name)) or None,
        turbo=_turbo(cpus),
        min_hertz=low * 1e3 if low else None,
        max_hertz=high * 1e3 if high else None,
    )


def _turbo(cpus: Path) -> bool | None:
    no_turbo = read_text(cpus / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = read_text(cpus / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _mitigations(root: Path) -> dict[str, str]:
    directory = root / "sys/devices/system/cpu/vulnerabilities"
    found = {path.name: read_text(path) for path in sorted(directory.glob("*"))}
    return {name: text for name, text in found.items() if text is not None}


def _virtualisation(root: Path, fields: dict[str, str]) -> Virtualisation:
    flags = (fields.get("flags") or "").split()
    dmi = root / "sys/class/dmi/id"
    return Virtualisation(
        # Arm has no such flag.
        hypervisor="hypervisor" in flags if flags else None,
        vendor=read_text(dmi / "sys_vendor"),
        product=read_text(dmi / "product_name"),
        container=_container(root),
    )


def _container(root: Path) -> str | None:
    """Return the evidence for a container, or None. A virtual machine made from a container's image
    has its files, but runs in the first namespaces."""
    for mark, kind in _CONTAINER_MARKS:
        if (root / mark).exists() and not _in_first_namespaces(root):
            return kind
    match = _CONTAINER_CGROUP.search(read_text(root / "proc/1/cgroup") or "")
    return match[0] if match else None


def _in_first_namespaces(root: Path) -> bool:
    """Whether this process runs in the namespaces that the kernel started with."""
    try:
        return all(
            str((root / "proc/self/ns" / name).readlink()) == f"{name}:[{number}]"
            for name, number in _FIRST_NAMESPACES.items()
        )
    except OSError:
        return False


def _cgroup(root: Path) -> CgroupLimits:
    """Return the limits of this process's own groups and of every group above them."""
    version = cgroup_version(root)
    cpuset = "cpuset.cpus.effective" if version == 2 else "cpuset.effective_cpus"
    return CgroupLimits(
        version=version,
        quota_cpus=_least(quota_of(group) for group in cgroup_groups(root, "cpu")),
        memory_bytes=_least(memory_limit_of(group) for group in cgroup_groups(root, "memory")),
        cpuset=first_text(group / cpuset for group in cgroup_groups(root, "cpuset")),
    )


def cgroup_version(root: Path) -> int | None:
    """Return 1 or 2, the hierarchy that has the controllers, or None without control groups."""
    base = root / "sys/fs/cgroup"
    if (base / "cgroup.controllers").exists():
        return 2
    known = base.is_dir() and read_text(root / "proc/self/cgroup")
    return 1 if known else None


def cgroup_groups(root: Path, controller: str) -> list[Path]:
    """Return this process's group for a controller and those above it, innermost first."""
    base = root / "sys/fs/cgroup"
    paths = _cgroup_paths(read_text(root / "proc/self/cgroup") or "")
    if cgroup_version(root) == 2:
        return _upwards(base, paths.get("", "/"))
    return _upwards(base / controller, paths.get(controller, "/")) if base.is_dir() else []


def quota_of(group: Path) -> float | None:
    """Return the CPU quota of one group, in CPUs, or None without one."""
    quota = _v2_quota(group)
    return _v1_quota(group) if quota is None else quota


def memory_limit_of(group: Path) -> int | None:
    """Return the memory limit of one group, in bytes, or None without one."""
    limit = read_number(group / "memory.max")
    return _v1_memory(group) if limit is None else limit


def _cgroup_paths(text: str) -> dict[str, str]:
    """Return the path by controller; the v2 hierarchy has the empty name. See cgroups(7)."""
    paths = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _upwards(base: Path, path: str) -> list[Path]:
    """Return the group and those above it, innermost first. Inside a container the path may not
    exist; then only what is mounted counts."""
    group = base / path.lstrip("/")
    groups = [group, *group.parents]
    return [one for one in groups if one == base or base in one.parents]


def _least(values: Iterable[_Number | None]) -> _Number | None:
    known = [value for value in values if value is not None]
    return min(known) if known else None


def _v2_quota(group: Path) -> float | None:
    quota, _, period = (read_text(group / "cpu.max") or "max").partition(" ")
    quota_us, period_us = whole_number(quota), whole_number(period)
    return quota_us / period_us if quota_us and period_us else None


def _v1_quota(group: Path) -> float | None:
    quota_us = read_number(group / "cpu.cfs_quota_us")
    period_us = read_number(group / "cpu.cfs_period_us")
    return quota_us / period_us if quota_us and quota_us > 0 and period_us else None


def _v1_memory(group: Path) -> int | None:
    limit = read_number(group / "memory.limit_in_bytes")
    return limit if limit is not None and limit < V1_UNLIMITED_BYTES else None
