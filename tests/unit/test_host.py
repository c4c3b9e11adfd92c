"""The inventory over trees that tests make, and over this host."""

import os
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.host.inventory import inventory, machine_hash
from hostbench.model.host import HostInventory

X86 = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC 9R14
stepping	: 1
microcode	: 0xa10113e
flags		: fpu sse2 avx2 hypervisor

processor	: 1
vendor_id	: Other
"""
ARM = """processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd sve
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40
CPU revision	: 1
"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def cpus(count: int, cores: int) -> dict[str, str]:
    files = {}
    for number in range(count):
        base = f"sys/devices/system/cpu/cpu{number}"
        files[f"{base}/topology/physical_package_id"] = "0\n"
        files[f"{base}/topology/core_id"] = f"{number % cores}\n"
        files[f"{base}/cache/index0/level"] = "1\n"
        files[f"{base}/cache/index0/type"] = "Data\n"
        files[f"{base}/cache/index0/size"] = "48K\n"
        files[f"{base}/cache/index0/shared_cpu_list"] = (
            f"{number % cores},{number % cores + cores}\n"
        )
        files[f"{base}/cache/index3/level"] = "3\n"
        files[f"{base}/cache/index3/type"] = "Unified\n"
        files[f"{base}/cache/index3/size"] = "32768K\n"
        files[f"{base}/cache/index3/shared_cpu_list"] = f"0-{count - 1}\n"
    return files


def test_x86(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": X86, "sys/devices/system/cpu/smt/active": "1\n", **cpus(4, 2)}
    cpu = inventory(tree(tmp_path, files)).cpu
    assert (cpu.vendor, cpu.family, cpu.model, cpu.stepping) == ("AuthenticAMD", 25, 17, 1)
    assert cpu.microcode == "0xa10113e"
    assert "avx2" in cpu.flags
    assert (cpu.online_cpus, cpu.cores, cpu.sockets, cpu.smt_active) == (4, 2, 1, True)


def test_arm(tmp_path: Path) -> None:
    cpu = inventory(tree(tmp_path, {"proc/cpuinfo": ARM})).cpu
    assert (cpu.implementer, cpu.variant, cpu.part, cpu.revision) == (0x41, 1, 0xD40, 1)
    assert cpu.flags == ("asimd", "fp", "sve")
    assert cpu.model is None


def test_caches_are_counted_by_who_shares_them(tmp_path: Path) -> None:
    first, last = inventory(tree(tmp_path, cpus(4, 2))).caches
    assert (first.level, first.size_bytes, first.shared_by_cpus, first.instances) == (
        1,
        48 << 10,
        2,
        2,
    )
    assert (last.level, last.size_bytes, last.shared_by_cpus, last.instances) == (3, 32 << 20, 4, 1)


def test_nothing_readable_is_no_error(tmp_path: Path) -> None:
    found = inventory(tmp_path)
    assert found.cpu.model_name is None
    assert found.caches == ()
    assert found.memory_bytes is None
    assert found.cgroup.version is None
    assert found.frequency.governor is None
    assert found.allowed_cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_garbage_is_no_error(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "cpu family : x\n::\n\x00\n",
        "proc/meminfo": "MemTotal: lots\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu",
        "sys/fs/cgroup/cpu.max": "",
        "sys/fs/cgroup/memory.max": "nonsense",
        "proc/self/cgroup": "::::\nx\n",
    }
    found = inventory(tree(tmp_path, files))
    assert (found.cpu.family, found.memory_bytes, found.cgroup.quota_cpus) == (None, None, None)


@pytest.mark.parametrize(
    ("files", "quota", "memory", "cpuset"),
    [
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/cgroup.controllers": "cpu memory",
                "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
                "sys/fs/cgroup/a/memory.max": "1048576\n",
                "sys/fs/cgroup/a/cpuset.cpus.effective": "2-3\n",
            },
            1.5,
            1048576,
            "2-3",
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/a\n2:memory:/m\n1:cpuset:/\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n",
                "sys/fs/cgroup/cpuset/cpuset.effective_cpus": "0-7\n",
            },
            0.5,
            2097152,
            "0-7",
        ),
    ],
    ids=["v2", "v1"],
)
def test_cgroup_limits_of_every_group_above(
    tmp_path: Path, files: dict[str, str], quota: float, memory: int, cpuset: str
) -> None:
    limits = inventory(tree(tmp_path, files)).cgroup
    assert (limits.quota_cpus, limits.memory_bytes, limits.cpuset) == (quota, memory, cpuset)


def test_frequency_virtualisation_and_mitigations(tmp_path: Path) -> None:
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    files = {
        "proc/cpuinfo": X86,
        f"{policy}/scaling_governor": "performance\n",
        f"{policy}/scaling_driver": "amd-pstate\n",
        f"{policy}/cpuinfo_max_freq": "3700000\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "sys/devices/system/cpu/vulnerabilities/retbleed": "Mitigation: x\n",
        "sys/class/dmi/id/product_name": "m7a.large\n",
        ".dockerenv": "",
    }
    found = inventory(tree(tmp_path, files))
    assert found.frequency.governor == "performance"
    assert found.frequency.max_hertz == 3.7e9
    assert found.frequency.turbo is False
    assert found.mitigations == {"retbleed": "Mitigation: x"}
    assert found.virtualisation.hypervisor is True
    assert found.virtualisation.product == "m7a.large"
    assert found.virtualisation.container == "docker"


def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTBENCH_MEMORY_BANDWIDTH", raising=False)
    node, pools = "sys/devices/system/node", "sys/kernel/mm/hugepages"
    files = {
        f"{node}/node0/meminfo": "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n",
        f"{node}/node0/cpulist": "0-1,4\n",
        f"{node}/node10/meminfo": "nonsense\n",
        f"{node}/node10/cpulist": "\n",
        f"{node}/node2/cpulist": "2-3\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "always defer [defer+madvise] never\n",
        f"{pools}/hugepages-1048576kB/nr_hugepages": "1\n",
        f"{pools}/hugepages-2048kB/nr_hugepages": "512\n",
        f"{pools}/hugepages-2048kB/free_hugepages": "500\n",
        f"{pools}/hugepages-64kB/nr_hugepages": "x\n",
    }
    found = inventory(tree(tmp_path, files)).memory
    assert found is not None
    assert [(one.node, one.memory_bytes, one.cpus) for one in found.nodes] == [
        (0, 1 << 20, (0, 1, 4)),
        (2, None, (2, 3)),
        (10, None, ()),
    ]
    assert found.transparent_huge_pages == "madvise"
    assert found.transparent_huge_page_defrag == "defer+madvise"
    pool, large = found.huge_page_pools
    assert (pool.page_bytes, pool.pages, pool.free_pages) == (2 << 20, 512, 500)
    assert (large.page_bytes, large.pages, large.free_pages) == (1 << 30, 1, None)
    assert found.user_bytes_per_second is None
    assert found.channels is None and found.channels_reason is not None


@pytest.mark.parametrize(("setting", "value"), [("307.2e9", 307.2e9), ("1", 1.0), ("", None)])
def test_a_bandwidth_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: float | None
) -> None:
    monkeypatch.setenv("HOSTBENCH_MEMORY_BANDWIDTH", setting)
    found = inventory(tmp_path).memory
    assert found is not None and found.user_bytes_per_second == value


@pytest.mark.parametrize("setting", ["0", "-1", "nan", "inf", "1e16", "300 GB/s", "x"])
def test_no_bandwidth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("HOSTBENCH_MEMORY_BANDWIDTH", setting)
    with pytest.raises(UsageError) as error:
        inventory(tmp_path)
    message = error.value.message
    assert f"HOSTBENCH_MEMORY_BANDWIDTH {setting!r} is not a bandwidth" in message
    assert "byte/s above 0" in message and "or unset it" in message


def test_inventories_of_earlier_versions_are_read() -> None:
    old = Path(__file__).with_name("fixtures") / "host.json"
    text = old.read_text()
    assert '"memory"' not in text and "cpu_lists" not in text
    found = HostInventory.model_validate_json(text)
    assert found.memory is None and found.caches[0].cpu_lists == ()


def test_a_container_has_the_machine_id_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("4c4c4544004b3010\n")
    of_the_node = inventory(tmp_path).machine
    assert of_the_node is not None and of_the_node == machine_hash("4c4c4544004b3010")
    monkeypatch.setenv("HOSTBENCH_MACHINE", of_the_node)
    (tmp_path / "etc/machine-id").write_text("of the image\n")
    assert inventory(tmp_path).machine == of_the_node
    (tmp_path / "etc/machine-id").unlink()
    assert inventory(tmp_path).machine == of_the_node
    monkeypatch.setenv("HOSTBENCH_MACHINE", "node1")
    with pytest.raises(UsageError, match="HOSTBENCH_MACHINE 'node1' is not a hash of a machine id"):
        inventory(tmp_path)


def test_the_machine_id_is_not_reported(tmp_path: Path) -> None:
    machine_id = "3d1219c7c4c5404aaa1f6d2a48adfda4"
    found = inventory(tree(tmp_path, {"etc/machine-id": machine_id})).machine
    assert found is not None and found not in machine_id


def test_this_host_can_be_described() -> None:
    found = inventory()
    assert found.allowed_cpus
    assert type(found).model_validate_json(found.model_dump_json()) == found
