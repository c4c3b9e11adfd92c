"""Bodies and answers as OpenAPI shows them."""

from typing import Any

SUBMISSIONS: dict[str, Any] = {
    "a suite": {"suite": "quick"},
    "a suite with changes": {
        "suite": "full",
        "hosts": ["bench-1"],
        "priority": 2,
        "trials": 7,
        "idle_policy": "fail",
        "peers": "auto",
    },
    "a suite at one of its scales": {"suite": "cs553/openstack-haswell", "scale": "full"},
    "a workload": {
        "workload": "cpu.fma",
        "params": {"dtype": "fp64", "isa": "avx2", "threads": 1, "duration_s": 2},
        "hosts": ["bench-1"],
    },
    "a workload on a disk": {
        "workload": "disk.rand_read",
        "params": {"block_bytes": 4096, "queue_depth": 32, "duration_s": 10},
    },
    "a suite in full": {
        "suite": {
            "name": "two-threads",
            "repeats": {"min_trials": 3, "max_trials": 5},
            "cases": [{"workload": "cpu.fma", "grid": {"threads": [1, 2], "dtype": "all"}}],
        }
    },
}
REGISTRATION: dict[str, Any] = {
    "cpu": {
        "host": "bench-1",
        "subsystem": "cpu",
        "url": "http://cpu:8001",
        "instance": "5d41402abc4b2a76",
    }
}
EVENTS = """\
event: state
id: 1763683201543-0
data: {"event":"state","job":"20261120T174501Z-quick-3f2a","state":"waiting","reason":null,…}

event: sample
data: {"event":"sample","case":"f3a97b2c01de","sample":{"event":"sample","t_s":1.0,…}}

: ping

event: state
id: 1763683263002-0
data: {"event":"state","job":"20261120T174501Z-quick-3f2a","state":"succeeded","reason":null,…}
"""
