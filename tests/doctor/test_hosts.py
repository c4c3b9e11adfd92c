"""What the checks say of whole hosts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hostbench.doctor.check import PROCESSES_HIDDEN
from hostbench.model.doctor import Finding, Place, State
from tests.doctor import hosts
from tests.doctor.hosts import Files, findings, view_of, watched

PROBLEM, NOTICE, UNKNOWN, OK = State
HERE, CONTAINER_HOST, VM_OWNER = Place

Expected = dict[str, tuple[State, str]]


def check(found: dict[str, Finding], expected: Expected) -> None:
    for name, (state, part) in expected.items():
        assert found[name].state is state, found[name]
        assert part in found[name].text, found[name]


HOSTS: list[tuple[Callable[[], Files], Expected]] = [
    (
        hosts.bare_metal_intel,
        {
            "cpu_governor": (NOTICE, "powersave, by intel_pstate"),
            "frequency_limits": (OK, "none below"),
            "energy_preference": (NOTICE, "balance_performance"),
            "turbo": (OK, "on"),
            "smt": (NOTICE, "share 4 cores"),
            "cpuset": (OK, "all 8"),
            "cpu_quota": (OK, "none"),
            "memory_limit": (OK, "none"),
            "cgroup_throttling": (OK, "never"),
            "thermal_throttling": (NOTICE, "5 times by cores and 7 times by the package"),
            "thermal_zones": (UNKNOWN, "no sensor"),
            "idle_states": (NOTICE, "C6, needs 170 µs"),
            "power_profile": (OK, "no daemon"),
            "battery": (OK, "none in use"),
            "mitigations": (NOTICE, "entering and leaving the kernel slower by mds"),
            "irqbalance": (NOTICE, "running"),
            "core_types": (OK, "one"),
            "numa_nodes": (OK, "one"),
            "virtual_machine": (OK, "no hypervisor"),
            "container": (OK, "no"),
            "hardware_counters": (OK, "there"),
            "perf_event_paranoid": (OK, "2"),
            "clocksource": (OK, "tsc"),
            "preemption": (OK, "voluntary"),
            "timer_frequency": (OK, "250 Hz"),
            "kernel_command_line": (OK, "nothing"),
            "capabilities": (NOTICE, "SYS_NICE and IPC_LOCK"),
            "locked_memory": (NOTICE, "8.389 MB"),
            "open_files": (OK, "1024"),
            "process_count": (OK, "255000"),
            "priority": (OK, "ordinary"),
            "results_file_system": (OK, "ext4"),
            "io_scheduler": (OK, "none"),
            "write_cache": (OK, "write through"),
            "io_uring": (OK, "can be used"),
            "swap_in_use": (OK, "no swap"),
            "load_average": (OK, "0.02"),
            "same_page_merging": (OK, "off"),
            "isolated_cpus": (OK, "none"),
            "realtime_throttling": (OK, "at most 95 %"),
            "memory_channels": (UNKNOWN, "no /sys/firmware/dmi/tables/DMI here"),
        },
    ),
    (
        hosts.amd_server,
        {
            "cpu_governor": (OK, "performance, by acpi-cpufreq"),
            "turbo": (NOTICE, "off"),
            "smt": (OK, "off"),
            "numa_nodes": (NOTICE, "2 NUMA nodes"),
            "numa_balancing": (NOTICE, "on"),
            "thermal_zones": (NOTICE, "6 °C below"),
            "thermal_throttling": (UNKNOWN, "Intel"),
            "energy_preference": (UNKNOWN, "no such setting"),
        },
    ),
    (
        hosts.container_v2,
        {
            "container": (NOTICE, "docker"),
            "cpu_quota": (PROBLEM, "1.500 CPUs of time for 2 allowed CPUs"),
            "cgroup_throttling": (NOTICE, "12 times"),
            "cpuset": (NOTICE, "2 of the 8"),
            "memory_limit": (NOTICE, "2.000 GiB of the host's 16.00 GiB"),
            "process_count": (PROBLEM, "60"),
            "results_file_system": (NOTICE, "overlay"),
            "write_cache": (UNKNOWN, "is unknown"),
            "irqbalance": (NOTICE, "running"),
            "smt": (NOTICE, "share 1 cores"),
        },
    ),
    (
        hosts.container_v1,
        {
            "cpu_quota": (PROBLEM, "0.5000 CPUs of time for 2 allowed CPUs"),
            "cgroup_throttling": (NOTICE, "4 times"),
            "memory_limit": (NOTICE, "1.000 GiB of the host's 16.00 GiB"),
            "process_count": (OK, "255000"),
        },
    ),
    (
        hosts.hybrid_laptop,
        {
            "core_types": (NOTICE, "performance cores 0-1 and efficiency cores 2-5"),
            "energy_preference": (PROBLEM, "power"),
            "battery": (PROBLEM, "battery"),
            "power_profile": (PROBLEM, "low-power"),
            "thermal_zones": (PROBLEM, "hot"),
        },
    ),
    (
        hosts.cloud_machine,
        {
            "virtual_machine": (NOTICE, "QEMU Standard PC"),
            "cpu_governor": (UNKNOWN, "host's owner"),
            "frequency_limits": (UNKNOWN, "host's owner"),
            "turbo": (UNKNOWN, "host's owner"),
            "thermal_throttling": (UNKNOWN, "host's owner"),
            "idle_states": (UNKNOWN, "host's owner"),
            "smt": (UNKNOWN, "not visible"),
            "numa_nodes": (UNKNOWN, "one is shown"),
            "core_types": (UNKNOWN, "may hide them"),
            "clocksource": (OK, "kvm-clock"),
        },
    ),
]


@pytest.mark.parametrize(("files", "expected"), HOSTS, ids=[files.__name__ for files, _ in HOSTS])
def test_host(tmp_path: Path, files: Callable[[], Files], expected: Expected) -> None:
    check(findings(view_of(tmp_path, files())), expected)


def test_evidence_is_the_file_and_what_it_says(tmp_path: Path) -> None:
    found = findings(view_of(tmp_path, hosts.bare_metal_intel()))
    governor, driver = found["cpu_governor"].evidence
    assert governor.source == "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    assert governor.value == "powersave (8)"
    assert driver.value == "intel_pstate (8)"
    assert found["locked_memory"].evidence[0].source == "/proc/self/limits"
    latency = found["idle_states"].evidence[-1]
    assert (latency.source, latency.value) == ("/dev/cpu_dma_latency", None)
    assert "not opened" in (latency.reason or "")


def test_every_level_of_a_quota_is_shown(tmp_path: Path) -> None:
    found = findings(view_of(tmp_path, hosts.container_v1()))["cpu_quota"]
    assert [(one.source, one.value) for one in found.evidence] == [
        ("/sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "100000 of cfs_period_us 100000"),
        ("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "50000 of cfs_period_us 100000"),
    ]


@pytest.mark.parametrize(
    ("files", "governor", "quota"),
    [
        (hosts.bare_metal_intel, HERE, HERE),
        (hosts.container_v2, CONTAINER_HOST, CONTAINER_HOST),
    ],
)
def test_where_a_remedy_has_to_be_applied(
    tmp_path: Path, files: Callable[[], Files], governor: Place, quota: Place
) -> None:
    limited = files() | {
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/cpu.stat": "nr_throttled 0\n",
    }
    found = findings(view_of(tmp_path, limited))
    remedies = (found["cpu_governor"].remedy, found["cpu_quota"].remedy)
    assert remedies[0] is not None and remedies[1] is not None
    assert (remedies[0].where, remedies[0].needs_root) == (governor, True)
    assert (remedies[1].where, remedies[1].needs_root) == (quota, False)


def test_in_a_virtual_machine_the_clock_is_the_owners(tmp_path: Path) -> None:
    files = hosts.cloud_machine() | hosts.clocked(2, "acpi-cpufreq", "ondemand")
    remedy = findings(view_of(tmp_path, files))["cpu_governor"].remedy
    assert remedy is not None and remedy.where is VM_OWNER
    swap = files | {
        "proc/swaps": "Filename Type Size Used Priority\n/dev/vdb partition 1024 512 -2\n"
    }
    remedy = findings(view_of(tmp_path / "swap", swap))["swap_in_use"].remedy
    assert remedy is not None and remedy.where is HERE


def test_a_machine_made_of_a_containers_image_is_no_container(tmp_path: Path) -> None:
    files = hosts.cloud_machine() | {".dockerenv": ""}
    found = findings(view_of(tmp_path, files))["container"]
    assert found.state is OK
    assert "its mark is here" in found.text


def test_processes_that_cannot_be_seen_are_not_denied(tmp_path: Path) -> None:
    files = hosts.container_v2()
    del files["proc/800/comm"]
    found = findings(view_of(tmp_path, files))
    assert found["irqbalance"].state is UNKNOWN
    assert found["power_profile"].state is UNKNOWN


def test_nothing_readable_is_unknown_with_a_reason(tmp_path: Path) -> None:
    found = findings(view_of(tmp_path, {}))
    never_unreadable = {"timer_resolution", "io_uring", "python", "programs", "peers", "openblas"}
    never_unreadable |= {"mem_peers", "disk_peers", "net_peers", "gpu_peers"}
    elsewhere = {"other_run", "results_space", "micro_architecture", "gpu_devices"}
    elsewhere |= {"scratch_directory", "scratch_space"}
    for name, finding in found.items():
        if name in never_unreadable | elsewhere:
            continue
        fine_without = {"same_page_merging", "numa_balancing", "gpu_driver"}
        assert finding.state is (OK if name in fine_without else UNKNOWN), finding
        hidden = finding.text == PROCESSES_HIDDEN
        assert hidden or any(one.reason for one in finding.evidence), finding


def test_nonsense_in_every_file_is_no_error(tmp_path: Path) -> None:
    everything = {
        **hosts.bare_metal_intel(),
        **hosts.amd_server(),
        **hosts.container_v1(),
        **hosts.hybrid_laptop(),
        **hosts.cloud_machine(),
    }
    nonsense = [
        "\x00\x1b[31m",
        "-1",
        "999999999999999999999999",
        "",
        "²",
        ": :: =\n\n(",
        "a" * 9999,
    ]
    for number, text in enumerate(nonsense):
        files = {name: text or "\n" for name in everything if "/ns/" not in name}
        found = findings(view_of(tmp_path / str(number), files))
        values = "".join(one.value or "" for finding in found.values() for one in finding.evidence)
        assert values.isprintable()
        assert all(
            len(one.value or "") < 400 for finding in found.values() for one in finding.evidence
        )


def test_a_secret_on_the_command_line_is_not_reported(tmp_path: Path) -> None:
    files = hosts.bare_metal_intel() | {
        "proc/cmdline": "root=UUID=secret password=x isolcpus=2-3 intel_idle.max-cstate=1 -- tsc\n"
    }
    found = findings(view_of(tmp_path, files))["kernel_command_line"]
    assert found.state is NOTICE
    assert found.evidence[0].value == "isolcpus=2-3 intel_idle.max-cstate=1"


def test_a_second_of_noise(tmp_path: Path) -> None:
    stat, core = (
        "/sys/fs/cgroup/cpu.stat",
        f"/{hosts.CPU}/cpu0/{hosts.THROTTLE}/core_throttle_count",
    )
    psi = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull total=0"
    before = {
        stat: "nr_throttled 11",
        core: "2",
        "/proc/pressure/memory": psi.format(5),
        "/proc/pressure/io": psi.format(5),
        "/proc/vmstat": "pswpin 4\npswpout 6",
    }
    after = {
        stat: "nr_throttled 12",
        core: "3",
        "/proc/pressure/memory": psi.format(100_005),
        "/proc/pressure/io": psi.format(1005),
        "/proc/vmstat": "pswpin 4\npswpout 16",
    }
    second = watched(busy=0.3, steal=0.05, psi_s=0.1, before=before, after=after)
    found = findings(view_of(tmp_path, hosts.container_v2(), observation=second))
    check(
        found,
        {
            "busy_cpus": (PROBLEM, "30.0 %"),
            "steal": (PROBLEM, "5.0 %"),
            "cpu_pressure": (PROBLEM, "10.0 %"),
            "memory_pressure": (PROBLEM, "10.0 %"),
            "io_pressure": (OK, "no task"),
            "cgroup_throttling": (PROBLEM, "this second"),
            "thermal_throttling": (PROBLEM, "this second"),
            "swap_in_use": (PROBLEM, "swapped"),
        },
    )
    assert "10 pages" in (found["swap_in_use"].evidence[-1].value or "")


@pytest.mark.parametrize(
    ("files", "ticks", "state"),
    [
        (hosts.cloud_machine, 0, UNKNOWN),
        (hosts.cloud_machine, 1, OK),
        (hosts.bare_metal_intel, 0, OK),
    ],
)
def test_a_hypervisor_that_never_reported_steal_may_not_report_it(
    tmp_path: Path, files: Callable[[], Files], ticks: int, state: State
) -> None:
    stat = {"proc/stat": f"cpu  5 0 5 900 0 0 0 {ticks} 0 0\n"}
    view = view_of(tmp_path, files() | stat, observation=watched())
    assert findings(view)["steal"].state is state


def test_a_quiet_second(tmp_path: Path) -> None:
    still = {
        "/sys/fs/cgroup/cpu.stat": "nr_throttled 12",
        "/proc/pressure/memory": "some avg10=0.00 total=7",
        "/proc/pressure/io": "some avg10=0.00 total=7",
    }
    second = watched(before=still, after=still)
    found = findings(view_of(tmp_path, hosts.container_v2(), observation=second))
    check(
        found,
        {
            "busy_cpus": (OK, "idle"),
            "steal": (OK, "none"),
            "cpu_pressure": (OK, "no task"),
            "memory_pressure": (OK, "no task"),
            "io_pressure": (OK, "no task"),
            "cgroup_throttling": (NOTICE, "not during this second"),
            "thermal_throttling": (NOTICE, "not now"),
        },
    )
