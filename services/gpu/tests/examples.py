"""What the tests that try every subsystem need of this one."""

# A trial as short as they get.
SHORT_CASE = {"workload": "gpu.fma", "params": {"duration_s": 0.1, "warmup_s": 0}}
# The workload that is given bad arguments, and what its options are called.
WORKLOAD = "gemm"
OPTIONS = {
    "count": "--n",
    "threads": "16 to 65536",
    "work": "--work",
    "choice": "--dtype",
    "choices": "bf16",
}
