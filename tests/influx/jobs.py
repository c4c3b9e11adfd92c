"""Real jobs for the tests of points: measured here, with a sink listening."""

import json
from collections.abc import Callable
from pathlib import Path

from hostbench.base.interrupt import Interrupt
from hostbench.host.idle import LocalWatch
from hostbench.model.job_events import Sink
from hostbench.model.result import ResultDocument, SessionRecord
from hostbench.model.suite import Suite
from hostbench.results.index import JobIndex
from hostbench.results.store import JobDirectory, ResultsStore, needed_bytes
from hostbench.run.job import set_up
from hostbench.run.local import LocalTransport
from hostbench.run.session import Apparatus, begin_journal, measure

SHORT = {
    "duration_s": 0.15,
    "warmup_s": 0.02,
    "sample_interval_s": 0.1,
    "threads": 1,
    "size_bytes": 8 << 20,
}
MEMORY_CASES = [
    {
        "workload": "mem.copy",
        "params": SHORT,
        "grid": {"pages": ["4k", "huge"]},
        "peers": ["likwid-bench"],
    },
    {
        "workload": "mem.read",
        "params": {**SHORT, "pattern": "random"},
        "grid": {"block_bytes": [64, 16384]},
    },
    {
        "workload": "mem.pointer_chase",
        "params": {name: value for name, value in SHORT.items() if name != "size_bytes"},
        "grid": {"size_bytes": [16 << 10, 4 << 20]},
    },
    {
        "workload": "mem.loaded_latency",
        "params": {**SHORT, "threads": 2},
        "grid": {"intensity": [0, 1]},
    },
    {"workload": "mem.random_access", "params": {**SHORT, "block_bytes": 8, "operation": "update"}},
    # No test host reserves such pages.
    {"workload": "mem.write", "params": {**SHORT, "pages": "hugetlb"}},
]
SHORT_CPU = {"duration_s": 0.1, "warmup_s": 0.02}
MAPS_CASES = [
    {
        "workload": "mem.pointer_chase",
        "params": {**SHORT, "pages": "4k"},
        "grid": {"stride_bytes": [64, 4096]},
    },
    {"workload": "mem.pointer_chase", "params": SHORT, "grid": {"chains": [2, 4]}},
    {"workload": "mem.code_chase", "params": SHORT, "grid": {"pages": ["4k", "huge"]}},
    {"workload": "cpu.roofline", "params": {**SHORT_CPU, "threads": 1}, "grid": {"fmas": [1, 32]}},
    {"workload": "cpu.core_to_core", "params": SHORT_CPU},
    {"workload": "cpu.clock_ladder", "params": SHORT_CPU, "grid": {"isa": ["scalar"]}},
    {"workload": "cpu.smt_yield", "params": SHORT_CPU},
    {"workload": "cpu.fixed_work", "params": {"duration_s": 0.3, "sample_interval_s": 0.1}},
    {"workload": "cpu.wakeup", "params": SHORT_CPU, "grid": {"on": ["same_cpu", "other_cpu"]}},
    {
        "workload": "cpu.context_switch",
        "params": SHORT_CPU,
        "grid": {"between": ["processes", "threads"]},
    },
    {
        "workload": "cpu.syscall",
        "params": {**SHORT_CPU, "threads": 1},
        "grid": {"call": ["getppid", "read"]},
    },
    {"workload": "cpu.page_fault", "params": SHORT_CPU, "grid": {"pages": ["4k", "huge"]}},
    {"workload": "cpu.process_start", "params": SHORT_CPU, "grid": {"how": ["fork"]}},
]
SHORT_DISK = {"duration_s": 0.4, "warmup_s": 0.05, "sample_interval_s": 0.1, "file_bytes": 64 << 20}
DISK_CASES = [
    {
        "workload": "disk.rand_read",
        "params": SHORT_DISK,
        "grid": {"queue_depth": [1, 8]},
        "peers": ["fio"],
    },
    {
        "workload": "disk.seq_read",
        "params": SHORT_DISK,
        "grid": {"block_bytes": [4096, 1 << 20]},
        "peers": ["fio"],
    },
    {"workload": "disk.seq_write", "params": {**SHORT_DISK, "cache_mode": "buffered"}},
    {"workload": "disk.rand_rw", "params": {**SHORT_DISK, "engine": "psync", "threads": 2}},
    {"workload": "disk.fsync_latency", "params": SHORT_DISK},
]
SHORT_NET = {"duration_s": 0.5, "warmup_s": 0.05, "sample_interval_s": 0.25}
NET_CASES = [
    {"workload": "net.tcp_stream", "params": SHORT_NET, "grid": {"streams": [1, 2]}},
    {
        "workload": "net.udp_stream",
        "params": {**SHORT_NET, "direction": "both"},
        "grid": {"rate": [20_000_000, 50_000_000]},
        "peers": ["iperf3"],
    },
    {
        "workload": "net.tcp_rr",
        "params": SHORT_NET,
        "grid": {"load_streams": [0, 1]},
        "peers": ["sockperf"],
    },
    {"workload": "net.udp_rr", "params": SHORT_NET, "grid": {"block_bytes": [1, 1024]}},
    {"workload": "net.tcp_crr", "params": SHORT_NET},
]
# By name: what OpenCL makes of a CPU is no GPU that `auto` would take.
SHORT_GPU = {
    "backend": "opencl",
    "device": "0",
    "duration_s": 0.3,
    "warmup_s": 0.05,
    "sample_interval_s": 0.1,
}
SMALL_GPU = {**SHORT_GPU, "size_bytes": 16 << 20}
GPU_CASES = [
    {"workload": "gpu.fma", "params": SHORT_GPU, "grid": {"dtype": ["fp64", "fp32"]}},
    {"workload": "gpu.copy", "params": SMALL_GPU},
    {
        "workload": "gpu.host_to_device",
        "params": SMALL_GPU,
        "grid": {"host_memory": ["pinned", "pageable"]},
    },
    {
        "workload": "gpu.pointer_chase",
        "params": SHORT_GPU,
        "grid": {"size_bytes": [1 << 16, 1 << 22]},
    },
    {"workload": "gpu.launch_latency", "params": SHORT_GPU},
]
SUITE = Suite.model_validate_json(
    json.dumps(
        {
            "name": "points",
            "idle": {"policy": "force"},
            "repeats": {"min_trials": 2, "max_trials": 2},
            "cases": [
                {
                    "workload": "cpu.fma",
                    "params": {"duration_s": 0.35, "warmup_s": 0.02, "sample_interval_s": 0.1},
                    "grid": {"dtype": ["fp64", "fp32"], "threads": [1]},
                    "peers": ["likwid-bench"],
                },
                {
                    "workload": "cpu.clock",
                    "label": 'odd, label="x" \\',
                    "params": {"duration_s": 0.25, "sample_interval_s": 0.1, "threads": 1},
                    "peers": ["sysbench"],
                },
                # Of a type that nothing else here has: a bar of its own, if it were among the best.
                {
                    "workload": "cpu.naive_operations",
                    "params": {"duration_s": 0.25, "sample_interval_s": 0.1, "threads": 1},
                    "grid": {"dtype": ["int8"]},
                },
                *MEMORY_CASES,
                *MAPS_CASES,
                *DISK_CASES,
                *NET_CASES,
                *GPU_CASES,
                # No host has both.
                {"workload": "cpu.fma", "params": {"isa": "neon", "threads": 1}},
                {"workload": "cpu.fma", "params": {"isa": "avx512", "threads": 1}},
            ],
        }
    )
)


def few_of(suite: Suite) -> Suite:
    """One case of each workload that makes points of its own kind: with peers, samples, a label of
    the user's, two ends, and one that is skipped."""
    kept = {
        *("cpu.fma", "cpu.clock", "disk.seq_read", "net.udp_stream", "gpu.copy"),
        *("mem.read", "mem.pointer_chase", "mem.loaded_latency", "mem.write"),
        *("mem.code_chase", "cpu.roofline", "cpu.core_to_core", "cpu.wakeup"),
    }
    cases = [
        case.model_copy(update={"grid": {name: values[-1:] for name, values in case.grid.items()}})
        for case in suite.cases
        if case.workload in kept
    ]
    return suite.model_copy(update={"cases": tuple(cases)})


def measured(
    results: Path, sink_of: Callable[[SessionRecord], Sink] | None = None, suite: Suite = SUITE
) -> tuple[JobDirectory, ResultDocument]:
    """Measure a suite; `sink_of` makes a sink that hears of it."""
    setup, programs = set_up(suite)
    store = ResultsStore(results)
    job = store.create(suite.name, needed_bytes(setup.plan))
    session = setup.session(job.id)
    interrupt = Interrupt()
    apparatus = Apparatus(LocalTransport(programs, interrupt, None), LocalWatch(), interrupt)
    sinks = [sink_of(session)] if sink_of else []
    with begin_journal(job, session) as journal:
        document = measure(job, journal, setup, session, apparatus, sinks, JobIndex(store.root))
    return job, document
