"""What the tests that try every subsystem need of this one."""

# A trial as short as they get.
SHORT_CASE = {
    "workload": "disk.rand_read",
    "params": {"duration_s": 0.1, "warmup_s": 0, "file_bytes": 4194304},
}
# The workload that is given bad arguments, and what its options are called.
WORKLOAD = "rand_read"
OPTIONS = {
    "count": "--threads",
    "threads": "1 to 512",
    "work": "--total-bytes",
    "choice": "--engine",
    "choices": "io_uring",
}
