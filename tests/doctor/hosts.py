"""Hosts that tests make out of files: what /proc and /sys say on machines we do not have."""

import errno
from collections.abc import Mapping
from pathlib import Path

from hostbench.base.cpu_times import CpuTimes
from hostbench.doctor.calls import Calls
from hostbench.doctor.examination import all_checks, report
from hostbench.doctor.observation import Observation
from hostbench.doctor.view import View
from hostbench.host.idle import Counters, window_between
from hostbench.host.inventory import inventory
from hostbench.model.doctor import Finding
from hostbench.model.result import Busy

Files = dict[str, str]
CPU = "sys/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy"
THROTTLE = "thermal_throttle"
FIRST_NAMESPACES = {"cgroup": 4026531835, "pid": 4026531836, "uts": 4026531838, "ipc": 4026531839}
GRANTED = Calls(clock_resolution_s=1e-9, io_uring_errno=errno.EFAULT, perf_event_errno=errno.EFAULT)


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """Make the files; a name below ns/ becomes a link, as the kernel has it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == "ns":
            path.symlink_to(content)
        else:
            path.write_text(content)
    return root


def view_of(
    root: Path,
    files: Mapping[str, str],
    calls: Calls = GRANTED,
    observation: Observation | None = None,
) -> View:
    """A view of a host made of files; its results and its scratch directory lie beside it."""
    host = tree(root / "host", files)
    (root / "scratch").mkdir(parents=True, exist_ok=True)
    return View(host, inventory(host), root / "results", root / "scratch", calls, observation)


def findings(view: View) -> dict[str, Finding]:
    """What all checks say, by name."""
    return {one.check: one for one in report(view, all_checks(), None).findings}


def finding(view: View, check: str) -> Finding:
    """What one check says; some others start programs, which takes time."""
    (found,) = report(view, [one for one in all_checks() if one.name == check], None).findings
    return found


def watched(
    busy: float = 0.0,
    steal: float = 0.0,
    psi_s: float = 0.0,
    busiest: tuple[Busy, ...] = (),
    before: Files | None = None,
    after: Files | None = None,
) -> Observation:
    """A second in which a host of two CPUs was used so much. Paths begin with a slash."""
    total, idle = 200, round(200 * (1 - busy - steal))
    start = Counters(at_s=0.0, cpus={"cpu": CpuTimes(0, 0, 0)}, psi_cpu_some_s=0.0)
    times = CpuTimes(total=total, idle=idle, steal=round(total * steal))
    end = Counters(at_s=1.0, cpus={"cpu": times}, psi_cpu_some_s=psi_s)
    return Observation(window_between(start, end), busiest, before or {}, after or {})


def processor(flags: str, vendor: str = "GenuineIntel", family: int = 6, model: int = 143) -> str:
    """/proc/cpuinfo, as far as it is read."""
    return (
        f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: A processor\nstepping\t: 1\nflags\t\t: {flags}\n"
    )


def status(cpus: str, capabilities: str = "0000000000000000", seccomp: int = 0) -> str:
    """/proc/self/status, as far as it is read."""
    return (
        f"Name:\tpython\nCapEff:\t{capabilities}\nSeccomp:\t{seccomp}\nCpus_allowed_list:\t{cpus}\n"
    )


def limits(nofile: str = "1024", memlock: str = "8388608", nproc: str = "255000") -> str:
    """/proc/self/limits, as far as it is read."""
    return (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        f"Max processes             {nproc:<20} {nproc:<20} processes \n"
        f"Max open files            {nofile:<20} 1048576              files     \n"
        f"Max locked memory         {memlock:<20} {memlock:<20} bytes     \n"
    )


def cores(count: int, threads: int = 1) -> Files:
    """`count` CPUs of cores with so many threads; siblings are neighbours, as on laptops."""
    files: Files = {f"{CPU}/online": f"0-{count - 1}\n", f"{CPU}/present": f"0-{count - 1}\n"}
    for cpu in range(count):
        first = cpu - cpu % threads
        siblings = f"{first}-{first + threads - 1}" if threads > 1 else str(cpu)
        topology = f"{CPU}/cpu{cpu}/topology"
        files |= {
            f"{topology}/physical_package_id": "0\n",
            f"{topology}/core_id": f"{first}\n",
            f"{topology}/thread_siblings_list": f"{siblings}\n",
        }
    files[f"{CPU}/smt/active"] = f"{int(threads > 1)}\n"
    files[f"{CPU}/smt/control"] = "on\n" if threads > 1 else "off\n"
    return files


def clocked(count: int, driver: str, governor: str, preference: str | None = None) -> Files:
    """A frequency policy for each CPU."""
    files: Files = {}
    for cpu in range(count):
        files |= {
            f"{POLICY}{cpu}/scaling_driver": f"{driver}\n",
            f"{POLICY}{cpu}/scaling_governor": f"{governor}\n",
            f"{POLICY}{cpu}/scaling_max_freq": "3800000\n",
            f"{POLICY}{cpu}/cpuinfo_max_freq": "3800000\n",
        }
        if preference:
            files[f"{POLICY}{cpu}/energy_performance_preference"] = f"{preference}\n"
    return files


def linux() -> Files:
    """What every Linux says, quietly."""
    namespaces = {f"proc/self/ns/{n}": f"{n}:[{i}]" for n, i in FIRST_NAMESPACES.items()}
    return namespaces | {
        "proc/1/comm": "systemd\n",
        "proc/1/cgroup": "0::/init.scope\n",
        "proc/self/cgroup": "0::/user.slice/session-1.scope\n",
        "proc/self/limits": limits(),
        "proc/self/stat": f"77 (a (b) c) S {' '.join(['0'] * 15)} 0 0 {' '.join(['0'] * 30)}\n",
        "proc/self/uid_map": "         0          0 4294967295\n",
        "proc/meminfo": "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 15000000 kB\n",
        "proc/loadavg": "0.02 0.10 0.20 1/300 4711\n",
        "proc/locks": "",
        "proc/swaps": "Filename Type Size Used Priority\n",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=secret ro quiet\n",
        "proc/version": "Linux version 6.12.0 (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n",
        "proc/sys/kernel/osrelease": "6.12.0-amd64\n",
        "proc/sys/kernel/numa_balancing": "0\n",
        "proc/sys/kernel/perf_event_paranoid": "2\n",
        "proc/sys/kernel/nmi_watchdog": "0\n",
        "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
        "proc/sys/kernel/sched_rt_period_us": "1000000\n",
        "proc/sys/kernel/io_uring_disabled": "0\n",
        "proc/sys/vm/swappiness": "60\n",
        "proc/sys/vm/overcommit_memory": "0\n",
        "boot/config-6.12.0-amd64": "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
        "sys/fs/cgroup/user.slice/pids.max": "max\n",
        "sys/kernel/mm/ksm/run": "0\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
        "sys/bus/event_source/devices/cpu/type": "4\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
        "sys/devices/system/node/online": "0\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        f"{CPU}/isolated": "\n",
        f"{CPU}/nohz_full": "\n",
        f"{CPU}/vulnerabilities/meltdown": "Not affected\n",
    }


def bare_metal_intel() -> Files:
    """A server as a distribution leaves it: powersave, SMT, deep idle states."""
    idle = f"{CPU}/cpu0/cpuidle"
    return {
        **linux(),
        **cores(8, threads=2),
        **clocked(8, "intel_pstate", "powersave", "balance_performance"),
        "proc/cpuinfo": processor("fpu sse2 avx2 avx512f"),
        "proc/self/status": status("0-7"),
        "proc/self/mountinfo": "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n",
        "sys/dev/block/259:2/partition": "2\n",
        "sys/dev/block/queue/scheduler": "[none] mq-deadline\n",
        "sys/dev/block/queue/write_cache": "write through\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        f"{CPU}/intel_pstate/max_perf_pct": "100\n",
        f"{CPU}/cpuidle/current_driver": "intel_idle\n",
        f"{idle}/state0/name": "POLL\n",
        f"{idle}/state0/latency": "0\n",
        f"{idle}/state1/name": "C1E\n",
        f"{idle}/state1/latency": "10\n",
        f"{idle}/state2/name": "C6\n",
        f"{idle}/state2/latency": "170\n",
        "sys/module/intel_idle/parameters/max_cstate": "9\n",
        f"{CPU}/cpu0/{THROTTLE}/core_throttle_count": "3\n",
        f"{CPU}/cpu0/{THROTTLE}/package_throttle_count": "7\n",
        f"{CPU}/cpu1/{THROTTLE}/core_throttle_count": "2\n",
        f"{CPU}/cpu1/{THROTTLE}/package_throttle_count": "7\n",
        f"{CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers; SMT vulnerable\n",
        f"{CPU}/vulnerabilities/gather_data_sampling": "Mitigation: Microcode\n",
        f"{CPU}/vulnerabilities/spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB\n",
        "sys/class/power_supply/.keep": "",
        "proc/800/comm": "irqbalance\n",
    }


def amd_server() -> Files:
    """Two nodes, boost off, SMT off, performance governor, memory moved between nodes."""
    return {
        **linux(),
        **cores(4),
        **clocked(4, "acpi-cpufreq", "performance"),
        "proc/cpuinfo": processor("fpu sse2 avx2", vendor="AuthenticAMD", family=25, model=1),
        "proc/self/status": status("0-3"),
        f"{CPU}/cpufreq/boost": "0\n",
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node1/cpulist": "2-3\n",
        "proc/sys/kernel/numa_balancing": "1\n",
        "sys/class/hwmon/hwmon0/name": "k10temp\n",
        "sys/class/hwmon/hwmon0/temp1_input": "64500\n",
        "sys/class/hwmon/hwmon0/temp1_max": "70000\n",
    }


def container_v2() -> Files:
    """Docker on a host of eight CPUs: 1.5 of them, 2 GiB, seccomp, hidden processes."""
    return {
        **bare_metal_intel(),
        "proc/self/ns/pid": "pid:[4026532999]",
        "proc/self/ns/cgroup": "cgroup:[4026532998]",
        ".dockerenv": "",
        "proc/1/comm": "sh\n",
        "proc/1/cgroup": "0::/\n",
        "proc/self/cgroup": "0::/\n",
        "proc/self/status": status("0-1", "00000000a80425fb", seccomp=2),
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/cpu.stat": "nr_periods 90\nnr_throttled 12\nthrottled_usec 4000\n",
        "sys/fs/cgroup/cpuset.cpus.effective": "0-1\n",
        "sys/fs/cgroup/memory.max": "2147483648\n",
        "sys/fs/cgroup/pids.max": "60\n",
        "proc/self/mountinfo": "500 400 0:60 / / rw - overlay overlay rw,lowerdir=/x\n",
    }


def container_v1() -> Files:
    """The same on an old hierarchy, where the parent has the tighter quota."""
    files = {name: text for name, text in container_v2().items() if "sys/fs/cgroup" not in name}
    return {
        **files,
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/a\n3:memory:/docker/a\n1:pids:/docker/a\n",
        "proc/1/cgroup": "4:cpu,cpuacct:/docker/a\n",
        "sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us": "100000\n",
        "sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu/docker/a/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 9\n",
        "sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu/docker/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "1073741824\n",
        "sys/fs/cgroup/pids/docker/a/pids.max": "max\n",
    }


def hybrid_laptop() -> Files:
    """Two kinds of cores, on battery, saving energy, hot."""
    zone = "sys/class/thermal/thermal_zone3"
    return {
        **linux(),
        **cores(6),
        **clocked(6, "intel_pstate", "powersave", "power"),
        "proc/cpuinfo": processor("fpu sse2 avx2", model=154),
        "proc/self/status": status("0-5"),
        "sys/devices/cpu_core/cpus": "0-1\n",
        "sys/devices/cpu_atom/cpus": "2-5\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        "sys/class/power_supply/AC/type": "Mains\n",
        "sys/class/power_supply/AC/online": "0\n",
        "sys/class/power_supply/BAT0/type": "Battery\n",
        "sys/class/power_supply/BAT0/status": "Discharging\n",
        "sys/class/power_supply/hid-mouse/type": "Battery\n",
        "sys/class/power_supply/hid-mouse/scope": "Device\n",
        "sys/class/power_supply/hid-mouse/status": "Discharging\n",
        "sys/firmware/acpi/platform_profile": "low-power\n",
        "proc/900/comm": "power-profiles-\n",
        f"{zone}/type": "x86_pkg_temp\n",
        f"{zone}/temp": "96000\n",
        f"{zone}/trip_point_0_type": "passive\n",
        f"{zone}/trip_point_0_temp": "95000\n",
        f"{zone}/trip_point_1_type": "critical\n",
        f"{zone}/trip_point_1_temp": "-274000\n",
    }


def cloud_machine() -> Files:
    """A virtual machine that shows next to nothing."""
    return {
        **linux(),
        **cores(2),
        "proc/cpuinfo": processor("fpu sse2 hypervisor"),
        "proc/self/status": status("0-1"),
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "sys/class/dmi/id/product_name": "Standard PC\n",
        f"{CPU}/cpuidle/current_driver": "haltpoll\n",
    }
