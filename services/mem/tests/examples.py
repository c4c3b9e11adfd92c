"""What the tests that try every subsystem need of this one."""

# A trial as short as they get: to fill what the workload takes by itself takes seconds.
SHORT_CASE = {
    "workload": "mem.triad",
    "params": {"duration_s": 0.05, "threads": 1, "warmup_s": 0, "size_bytes": 48 << 20},
}
# The workload that is given bad arguments, and what its options are called.
WORKLOAD = "triad"
OPTIONS = {
    "count": "--threads",
    "threads": "1 to 4096",
    "work": "--work",
    "choice": "--isa",
    "choices": "avx512",
}
