"""One check at a time: the values at which its answer changes."""

import dataclasses
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hostbench.doctor.calls import Calls
from hostbench.doctor.cores import cpu_ranges
from hostbench.model.doctor import Finding, State
from hostbench.model.host import BlockDevice, Disk, Interface, Network, ScratchPlace
from services.disk import doctor as disk_doctor
from tests.doctor import hosts
from tests.doctor.hosts import CPU, POLICY, Files, finding, findings, view_of
from tests.unit import smbios_tables

PROBLEM, NOTICE, UNKNOWN, OK = State
SWAPS = "Filename Type Size Used Priority\n/dev/sda2 partition 2097152 {} -2\n"
ZONE = "sys/class/thermal/thermal_zone0"
QUEUE = "sys/dev/block/8:0/queue"
PLAIN_DISK = {"proc/self/mountinfo": "22 1 8:0 / / rw - xfs /dev/sda rw\n"}
STORE_BYPASS = f"{CPU}/vulnerabilities/spec_store_bypass"
CGROUP = "sys/fs/cgroup/user.slice"


def mounted(kind: str, source: str = "x") -> Files:
    return {"proc/self/mountinfo": f"22 1 0:44 / / rw - {kind} {source} rw\n"}


def nice(value: int, policy: int) -> Files:
    fields = ["S", *["0"] * 15, str(value), *["0"] * 21, str(policy), *["0"] * 11]
    return {"proc/self/stat": f"77 (a) b) {' '.join(fields)}\n"}


def zone(millidegrees: int) -> Files:
    return {
        f"{ZONE}/temp": f"{millidegrees}\n",
        f"{ZONE}/trip_point_0_type": "passive\n",
        f"{ZONE}/trip_point_0_temp": "90000\n",
        f"{ZONE}/trip_point_1_type": "active\n",
        f"{ZONE}/trip_point_1_temp": "40000\n",
    }


@pytest.mark.parametrize(
    ("check", "files", "state", "part"),
    [
        ("cpu_governor", hosts.clocked(8, "intel_pstate", "performance"), OK, "performance"),
        ("cpu_governor", hosts.clocked(8, "amd-pstate-epp", "powersave"), NOTICE, "follows"),
        ("cpu_governor", hosts.clocked(8, "intel_cpufreq", "powersave"), PROBLEM, "lowest"),
        ("cpu_governor", hosts.clocked(8, "acpi-cpufreq", "schedutil"), NOTICE, "schedutil"),
        ("cpu_governor", {f"{POLICY}3/scaling_governor": "performance\n"}, NOTICE, "powersave"),
        ("frequency_limits", {f"{POLICY}3/scaling_max_freq": "2000000\n"}, PROBLEM, "1 of 8"),
        ("frequency_limits", {f"{CPU}/intel_pstate/max_perf_pct": "80\n"}, PROBLEM, "80 %"),
        (
            "frequency_limits",
            {f"{POLICY}3/scaling_max_freq": "20000\n", f"{CPU}/intel_pstate/no_turbo": "1\n"},
            OK,
            "without turbo",
        ),
        ("energy_preference", hosts.clocked(8, "x", "y", "performance"), OK, "performance"),
        ("energy_preference", hosts.clocked(8, "x", "y", "0"), OK, "0"),
        ("energy_preference", hosts.clocked(8, "x", "y", "128"), NOTICE, "128"),
        ("energy_preference", hosts.clocked(8, "x", "y", "192"), PROBLEM, "192"),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1\n"}, NOTICE, "off"),
        ("turbo", {f"{POLICY}2/boost": "0\n", f"{POLICY}3/boost": "1\n"}, NOTICE, "some"),
        ("thermal_zones", zone(79_000), OK, "11 °C"),
        ("thermal_zones", zone(80_000), NOTICE, "10 °C"),
        ("thermal_zones", zone(90_000), PROBLEM, "hot"),
        ("smt", {f"{CPU}/smt/active": "0\n"}, OK, "off"),
        ("smt", {"proc/self/status": hosts.status("0,2,4,6")}, OK, "no two"),
        ("smt", {"proc/self/status": hosts.status("0-2")}, NOTICE, "share 1 cores"),
        ("cpuset", {"proc/self/status": hosts.status("1-6")}, NOTICE, "6 of the 8"),
        ("offline_cpus", {f"{CPU}/online": "0-5\n"}, NOTICE, "6-7"),
        (
            "offline_cpus",
            {f"{CPU}/online": "0,2,4,6\n", f"{CPU}/smt/control": "off\n"},
            OK,
            "1,3,5,7",
        ),
        ("isolated_cpus", {f"{CPU}/isolated": "2-3\n"}, NOTICE, "2-3"),
        ("isolated_cpus", {f"{CPU}/nohz_full": "2-3,6\n"}, NOTICE, "2-3,6"),
        ("core_types", {f"{CPU}/cpu0/cpu_capacity": "1024\n"}, OK, "one"),
        (
            "core_types",
            {f"{CPU}/cpu0/cpu_capacity": "1024\n", f"{CPU}/cpu1/cpu_capacity": "446\n"},
            NOTICE,
            "capacity",
        ),
        (
            "core_types",
            {"sys/devices/cpu_core/cpus": "0-3\n", "sys/devices/cpu_atom/cpus": "8-11\n"},
            OK,
            "performance cores only",
        ),
        ("cpu_quota", {f"{CGROUP}/cpu.max": "799999 100000\n"}, PROBLEM, "8.000 CPUs"),
        ("cpu_quota", {f"{CGROUP}/cpu.max": "800000 100000\n"}, OK, "8.000 CPUs"),
        ("memory_limit", {f"{CGROUP}/memory.max": "17179869183\n"}, NOTICE, "16.00 GiB"),
        ("memory_limit", {f"{CGROUP}/memory.max": "17179869184\n"}, OK, "16.00 GiB"),
        ("load_average", {"proc/loadavg": "3.99 0.0 0.0 1/1 1\n"}, OK, "3.99"),
        ("load_average", {"proc/loadavg": "4.00 0.0 0.0 1/1 1\n"}, NOTICE, "4 over"),
        ("same_page_merging", {"sys/kernel/mm/ksm/run": "1\n"}, NOTICE, "on"),
        ("idle_states", {f"{CPU}/cpu0/cpuidle/state2/disable": "1\n"}, OK, "C1E, wakes in 10 µs"),
        ("power_profile", {"sys/firmware/acpi/platform_profile": "balanced\n"}, NOTICE, "bal"),
        ("power_profile", {"sys/firmware/acpi/platform_profile": "performance\n"}, OK, "perf"),
        ("power_profile", {"proc/9/comm": "auto-cpufreq\n"}, NOTICE, "auto-cpufreq"),
        (
            "power_profile",
            {"proc/9/comm": "tuned\n", "etc/tuned/active_profile": "powersave\n"},
            NOTICE,
            "powersave",
        ),
        (
            "power_profile",
            {"proc/9/comm": "tuned\n", "etc/tuned/active_profile": "hpc-compute\n"},
            OK,
            "tuned, hpc-compute",
        ),
        (
            "battery",
            {
                "sys/class/power_supply/BAT0/type": "Battery\n",
                "sys/class/power_supply/BAT0/status": "Charging\n",
            },
            OK,
            "none in use",
        ),
        (
            "transparent_huge_pages",
            {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n"},
            NOTICE,
            "never",
        ),
        (
            "transparent_huge_pages",
            {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"},
            OK,
            "always",
        ),
        (
            "hugetlb_pool",
            {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1024\n"},
            NOTICE,
            "2.000 GiB",
        ),
        (
            "hugetlb_pool",
            {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "2\n"},
            OK,
            "GiB",
        ),
        ("numa_balancing", {"proc/sys/kernel/numa_balancing": "1\n"}, OK, "one node"),
        ("swap_in_use", {"proc/swaps": SWAPS.format(0)}, OK, "2.000 GiB"),
        ("swap_in_use", {"proc/swaps": SWAPS.format(1048576)}, NOTICE, "1.000 GiB"),
        ("swappiness", {"proc/swaps": SWAPS.format(0)}, NOTICE, "60"),
        ("overcommit", {"proc/sys/vm/overcommit_memory": "2\n"}, NOTICE, "strict"),
        ("overcommit", {"proc/sys/vm/overcommit_memory": "1\n"}, OK, "granted"),
        (
            "memory_available",
            {"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 499 kB\n"},
            NOTICE,
            "more than 50 %",
        ),
        (
            "clocksource",
            {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"},
            PROBLEM,
            "hpet",
        ),
        (
            "preemption",
            {"proc/version": "Linux version 6.12 #1 SMP PREEMPT_RT\n"},
            NOTICE,
            "PREEMPT_RT",
        ),
        (
            "preemption",
            {"sys/kernel/debug/sched/preempt": "none voluntary (full) lazy\n"},
            OK,
            "full",
        ),
        ("preemption", {"proc/cmdline": "quiet preempt=none\n"}, OK, "none"),
        ("timer_frequency", {"boot/config-6.12.0-amd64": "CONFIG_HZ=1000\n"}, NOTICE, "1000 Hz"),
        ("realtime_throttling", {"proc/sys/kernel/sched_rt_runtime_us": "-1\n"}, NOTICE, "off"),
        ("mitigations", {f"{CPU}/vulnerabilities/mds": "Vulnerable\n"}, NOTICE, "gather"),
        (
            "mitigations",
            {
                f"{CPU}/vulnerabilities/mds": "Not affected\n",
                f"{CPU}/vulnerabilities/gather_data_sampling": "Not affected\n",
            },
            OK,
            "none that costs",
        ),
        (
            "mitigations",
            {STORE_BYPASS: "Mitigation: Speculative Store Bypass disabled via prctl\n"},
            NOTICE,
            "mds; gather instructions slower by gather_data_sampling",
        ),
        (
            "mitigations",
            {STORE_BYPASS: "Mitigation: Speculative Store Bypass disabled\n"},
            NOTICE,
            "ordinary code slower by spec_store_bypass",
        ),
        ("perf_event_paranoid", {"proc/sys/kernel/perf_event_paranoid": "3\n"}, NOTICE, "3"),
        (
            "perf_event_paranoid",
            {
                "proc/sys/kernel/perf_event_paranoid": "4\n",
                "proc/self/status": hosts.status("0-7", "0000004000000000"),
            },
            OK,
            "may count",
        ),
        ("hardware_counters", {"proc/sys/kernel/nmi_watchdog": "1\n"}, NOTICE, "watchdog"),
        ("capabilities", {"proc/self/status": hosts.status("0", "0000000000804000")}, OK, "held"),
        (
            "capabilities",
            {"proc/self/status": hosts.status("0", "0000000000800000")},
            NOTICE,
            "without IPC_LOCK:",
        ),
        (
            "capabilities",
            {
                "proc/self/status": hosts.status("0", "000001ffffffffff"),
                "proc/self/uid_map": "0 1000 1\n",
            },
            NOTICE,
            "user namespace",
        ),
        ("open_files", {"proc/self/limits": hosts.limits(nofile="1023")}, NOTICE, "1023"),
        ("open_files", {"proc/self/limits": hosts.limits(nofile="unlimited")}, OK, "unlimited"),
        ("locked_memory", {"proc/self/limits": hosts.limits(memlock="67108863")}, NOTICE, "MB"),
        ("locked_memory", {"proc/self/limits": hosts.limits(memlock="67108864")}, OK, "MB"),
        (
            "locked_memory",
            {"proc/self/status": hosts.status("0", "0000000000004000")},
            OK,
            "does not bind",
        ),
        ("process_count", {"proc/self/limits": hosts.limits(nproc="71")}, PROBLEM, "71"),
        ("process_count", {"proc/self/limits": hosts.limits(nproc="72")}, NOTICE, "72"),
        ("process_count", {f"{CGROUP}/pids.max": "4160\n"}, OK, "4160"),
        (
            "process_count",
            {"proc/self/limits": hosts.limits(nproc="unlimited")},
            OK,
            "unlimited",
        ),
        ("priority", nice(5, 0), NOTICE, "nice 5"),
        ("priority", nice(0, 5), NOTICE, "SCHED_IDLE"),
        ("priority", nice(-5, 0), OK, "nice -5"),
        ("priority", nice(0, 1), UNKNOWN, "policy 1"),
        ("results_file_system", mounted("tmpfs"), NOTICE, "memory"),
        ("results_file_system", mounted("nfs4"), NOTICE, "network"),
        ("results_file_system", mounted("fuse.sshfs"), NOTICE, "another process"),
        ("results_file_system", mounted("btrfs", "/dev/sdb1"), OK, "btrfs"),
        (
            "write_cache",
            mounted("btrfs", "/dev/sdb")
            | {"sys/class/block/sdb/queue/write_cache": "write back\n"},
            NOTICE,
            "volatile",
        ),
        (
            "io_scheduler",
            PLAIN_DISK | {f"{QUEUE}/scheduler": "none mq-deadline [bfq]\n"},
            NOTICE,
            "bfq",
        ),
        ("io_scheduler", PLAIN_DISK | {f"{QUEUE}/scheduler": "none\n"}, OK, "none"),
        (
            "io_scheduler",
            PLAIN_DISK
            | {
                "sys/dev/block/8:0/slaves/dm-1/slaves/sdc/queue/scheduler": "[mq-deadline] none\n",
                f"{QUEUE}/scheduler": "[bfq]\n",
            },
            OK,
            "mq-deadline",
        ),
        ("direct_io", PLAIN_DISK, OK, "xfs has it"),
        ("direct_io", mounted("overlay", "overlay"), NOTICE, "a container's own layer"),
        ("direct_io", mounted("nfs4"), NOTICE, "a network"),
        ("direct_io", mounted("fuse.sshfs"), NOTICE, "another process"),
        ("direct_io", mounted("zfs"), UNKNOWN, "a trial tells"),
    ],
)
def test_check(tmp_path: Path, check: str, files: Files, state: State, part: str) -> None:
    found = finding(view_of(tmp_path, hosts.bare_metal_intel() | files), check)
    assert found.state is state, found
    assert part in found.text, found
    assert found.evidence


@pytest.mark.parametrize(
    ("answer", "disabled", "state", "part"),
    [
        (errno.EFAULT, 0, OK, "can be used"),
        (errno.EPERM, 0, NOTICE, "filter"),
        (errno.EPERM, 2, NOTICE, "switched off"),
        (errno.ENOSYS, 0, NOTICE, "not in this kernel"),
        (errno.ENOMEM, 0, UNKNOWN, "does not know"),
        (None, 0, UNKNOWN, "does not know"),
    ],
)
def test_io_uring(
    tmp_path: Path, answer: int | None, disabled: int, state: State, part: str
) -> None:
    calls = Calls(clock_resolution_s=1e-9, io_uring_errno=answer, perf_event_errno=errno.EFAULT)
    files = hosts.bare_metal_intel() | {"proc/sys/kernel/io_uring_disabled": f"{disabled}\n"}
    found = finding(view_of(tmp_path, files, calls), "io_uring")
    assert (found.state, part in found.text) == (state, True), found


def test_coarse_clock_and_forbidden_perf_events(tmp_path: Path) -> None:
    calls = Calls(clock_resolution_s=4e-3, io_uring_errno=None, perf_event_errno=errno.EPERM)
    found = findings(view_of(tmp_path, hosts.container_v2(), calls))
    assert found["timer_resolution"].state is PROBLEM
    assert found["perf_event_paranoid"].state is NOTICE
    assert "filter" in found["perf_event_paranoid"].text


def test_arm_does_not_tell_whether_it_is_virtual(tmp_path: Path) -> None:
    files = hosts.cloud_machine() | {
        "proc/cpuinfo": "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\n"
    }
    found = findings(view_of(tmp_path, files))
    assert found["virtual_machine"].state is UNKNOWN
    assert found["smt"].state is UNKNOWN
    assert found["numa_nodes"].state is UNKNOWN


def test_missing_tools_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sysbench").write_text("#!/bin/sh\n")
    (tools / "sysbench").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    found = findings(view_of(tmp_path, hosts.amd_server()))
    peers, openblas = found["peers"], found["openblas"]
    assert peers.state is NOTICE and peers.remedy is not None
    assert peers.remedy.action == (
        "apt-get install likwid stress-ng hpcc libopenblas0-pthread linux-perf rt-tests"
    )
    assert peers.remedy.needs_root
    assert openblas.state is NOTICE
    mem_peers = found["mem_peers"]
    assert mem_peers.remedy is not None
    assert mem_peers.remedy.action == "apt-get install likwid mbw hpcc libopenblas0-pthread"
    disk_peers = found["disk_peers"]
    assert disk_peers.remedy is not None
    assert disk_peers.remedy.action == "apt-get install fio coreutils ioping"
    net_peers = found["net_peers"]
    assert net_peers.remedy is not None
    assert net_peers.remedy.action == "apt-get install iperf3 sockperf qperf iputils-ping"
    files = {"usr/lib/x86_64-linux-gnu/libopenblas.so.0": ""}
    assert finding(view_of(tmp_path / "with", files), "openblas").state is OK


@pytest.mark.parametrize(
    ("content", "state", "part"),
    [
        (smbios_tables.supermicro_12_channels(), OK, "12, which transfer 460.8 GB/s at most"),
        (
            smbios_tables.table(
                smbios_tables.device("DIMM 0", "CHANNEL A"),
                smbios_tables.device("DIMM 0", "CHANNEL B", 0, 0),
            ),
            NOTICE,
            "1 of 2 are populated, which transfer 38.40 GB/s at most",
        ),
        (
            smbios_tables.table(
                smbios_tables.device("DIMM 0", "CHANNEL A"),
                smbios_tables.device("DIMM 0", "CHANNEL B", configured=4400),
            ),
            NOTICE,
            "not alike; all together transfer 73.60 GB/s",
        ),
        (smbios_tables.qemu(), UNKNOWN, "limits will be empty: SMBIOS names no data width"),
    ],
)
def test_memory_channels(tmp_path: Path, content: bytes, state: State, part: str) -> None:
    files = hosts.bare_metal_intel()
    smbios_tables.written(tmp_path / "host", content)
    found = finding(view_of(tmp_path, files), "memory_channels")
    assert found.state is state and part in found.text, found


def test_a_bandwidth_that_the_user_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_MEMORY_BANDWIDTH", "307.2e9")
    found = finding(view_of(tmp_path, hosts.cloud_machine()), "memory_channels")
    assert found.state is OK and found.text == "set by you: 307.2 GB/s"


def test_programs_that_are_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(tmp_path))
    found = finding(view_of(tmp_path, hosts.amd_server()), "programs")
    assert found.state is PROBLEM and "cpu-bench" in found.text
    assert found.remedy is not None and found.remedy.action == "make programs"


@pytest.mark.parametrize(
    ("cpus", "text"),
    [((0,), "0"), ((3, 1, 2), "1-3"), ((0, 1, 2, 8, 10, 11), "0-2,8,10-11"), ((), "")],
)
def test_cpu_ranges(cpus: tuple[int, ...], text: str) -> None:
    assert cpu_ranges(cpus) == text


# ---- the scratch directory ----


def examined(tmp_path: Path, check: str, scratch: ScratchPlace | None = None) -> Finding:
    view = view_of(tmp_path, hosts.bare_metal_intel())
    host = view.host.model_copy(update={"scratch": scratch or view.host.scratch})
    return finding(dataclasses.replace(view, host=host), check)


def test_a_scratch_directory_that_serves(tmp_path: Path) -> None:
    assert examined(tmp_path, "scratch_directory").state is OK


@pytest.mark.parametrize("wrong", ["missing", "file", "link"])
def test_a_scratch_directory_that_does_not(tmp_path: Path, wrong: str) -> None:
    view = view_of(tmp_path, hosts.bare_metal_intel())
    view.scratch.rmdir()
    if wrong == "file":
        view.scratch.touch()
    elif wrong == "link":
        view.scratch.symlink_to(tmp_path)
    found = finding(view, "scratch_directory")
    parts = {
        "missing": "does not exist",
        "file": "is not a directory",
        "link": "is a symbolic link",
    }
    assert found.state is PROBLEM and parts[wrong] in found.text, found
    assert found.remedy is not None and "HOSTBENCH_SCRATCH" in found.remedy.action


def test_memory_is_no_scratch_directory(tmp_path: Path) -> None:
    view = view_of(tmp_path, hosts.bare_metal_intel())
    found = finding(dataclasses.replace(view, scratch=Path("/dev/shm")), "scratch_directory")
    assert found.state is PROBLEM and "is in memory (tmpfs)" in found.text


def test_a_default_directory_that_the_first_run_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(tmp_path, hosts.bare_metal_intel())
    view.scratch.rmdir()
    monkeypatch.setattr(disk_doctor, "default_directory", lambda: view.scratch)
    found = finding(view, "scratch_directory")
    assert found.state is OK and "which the first run makes" in found.text
    assert not view.scratch.exists(), "not by looking"


@pytest.mark.parametrize(("left", "state"), [(0.5, PROBLEM), (5, NOTICE), (50, OK)])
def test_room_is_what_is_left_beside_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float, state: State
) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    if free < left * (1 << 30):
        pytest.skip(f"{free} bytes are free here, {left} GiB are needed")
    monkeypatch.setenv("HOSTBENCH_DISK_RESERVE_BYTES", str(int(free - left * (1 << 30))))
    found = examined(tmp_path, "scratch_space")
    assert found.state is state, found


def disk(**link: Any) -> ScratchPlace:
    one = Disk(name="sda", transport="sata", **link)
    device = BlockDevice(number="8:0", name="sda1", disks=(one,))
    return ScratchPlace(directory="/scratch", device=device, device_source="st_dev")


@pytest.mark.parametrize(
    ("scratch", "state", "part"),
    [
        (disk(link_bytes_per_second=6e8, link_source="sda: SATA"), OK, "carries 600.0 MB/s"),
        (disk(link_reason="sda: sata_spd"), UNKNOWN, "its link is not known"),
        (
            ScratchPlace(directory="/scratch", device_reason="overlay"),
            UNKNOWN,
            "the disk is not known",
        ),
        (
            disk(link_bytes_per_second=6e8).model_copy(update={"device_source": "inferred: /etc"}),
            UNKNOWN,
            "the disk is only guessed",
        ),
        (
            ScratchPlace(directory="/scratch", user_bytes_per_second=3.5e9),
            OK,
            "set by you: 3.500 GB/s",
        ),
    ],
)
def test_the_limit_of_the_disk(
    tmp_path: Path, scratch: ScratchPlace, state: State, part: str
) -> None:
    found = examined(tmp_path, "disk_limit", scratch)
    assert found.state is state and part in found.text, found
    assert (found.remedy is None) == (state is OK)


# ---- the network ----

QUIET_NETWORK = {
    "proc/sys/net/core/rmem_max": "8388608\n",
    "proc/sys/net/core/wmem_max": "4194304\n",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
}
CARD = Interface(
    name="eth0",
    kind="ethernet",
    physical=True,
    state="up",
    duplex="full",
    link_bits_per_second=10e9,
    link_source="eth0: 10000 Mbit/s",
)


def of_network(
    tmp_path: Path, check: str, files: dict[str, str] | None = None, network: Network | None = None
) -> Finding:
    view = view_of(tmp_path, hosts.amd_server() | QUIET_NETWORK | (files or {}))
    host = view.host.model_copy(update={"network": network or view.host.network})
    return finding(dataclasses.replace(view, host=host), check)


def test_a_network_that_serves(tmp_path: Path) -> None:
    network = Network(interfaces=(CARD,))
    for number, check in enumerate(
        ("net_limit", "duplex", "congestion_control", "socket_buffers", "connection_tracking")
    ):
        found = of_network(tmp_path / str(number), check, network=network)
        assert found.state is OK and found.remedy is None, found


def test_the_limit_of_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = of_network(tmp_path / "card", "net_limit", network=Network(interfaces=(CARD,)))
    assert known.text == "eth0 10.00 Gbit/s"
    veth = Interface(
        name="eth0",
        kind="veth",
        physical=False,
        link_reason="eth0: veth devices have no real speed",
    )
    for name, network in (
        ("veth", Network(interfaces=(veth,))),
        ("down", Network(interfaces=(CARD.model_copy(update={"state": "down"}),))),
    ):
        found = of_network(tmp_path / name, "net_limit", network=network)
        assert found.state is UNKNOWN and found.remedy is not None
        assert "HOSTBENCH_NET_BANDWIDTH" in found.remedy.action
        assert all(one.reason for one in found.evidence)
    monkeypatch.setenv("HOSTBENCH_NET_BANDWIDTH", "1.17e9")
    rated = of_network(tmp_path / "rated", "net_limit")
    assert rated.state is OK and rated.text == "set by you: 1.170 GB/s"


def test_a_kernel_that_does_not_say_how_it_shares_cpus(tmp_path: Path) -> None:
    path = "proc/sys/kernel/sched_autogroup_enabled"
    assert of_network(tmp_path / "off", "session_groups", {path: "0\n"}).state is OK
    missing = of_network(tmp_path / "missing", "session_groups")
    assert missing.state is UNKNOWN and missing.evidence[0].reason


def test_half_duplex(tmp_path: Path) -> None:
    half = CARD.model_copy(update={"duplex": "half"})
    found = of_network(tmp_path, "duplex", network=Network(interfaces=(half,)))
    assert found.state is PROBLEM and "eth0" in found.text


@pytest.mark.parametrize(
    ("check", "files", "part"),
    [
        ("congestion_control", {"proc/sys/net/ipv4/tcp_congestion_control": "bbr\n"}, "bbr"),
        ("socket_buffers", {"proc/sys/net/core/rmem_max": "212992\n"}, "208 KiB at most"),
        ("connection_tracking", {"proc/sys/net/netfilter/nf_conntrack_count": "17\n"},
         "with 17 connections"),
        ("session_groups", {"proc/sys/kernel/sched_autogroup_enabled": "1\n"}, "lease"),
    ],
)  # fmt: skip
def test_what_a_network_figure_depends_on(
    tmp_path: Path, check: str, files: dict[str, str], part: str
) -> None:
    found = of_network(tmp_path, check, files)
    assert found.state is NOTICE and part in found.text and found.remedy is not None, found


def test_who_may_go_past_the_limit_of_buffers(tmp_path: Path) -> None:
    files = {
        "proc/sys/net/core/rmem_max": "212992\n",
        "proc/self/status": hosts.status("0-7", f"{1 << 12:016x}"),
    }
    assert of_network(tmp_path, "socket_buffers", files).state is OK
