"""What the tests that try every subsystem need of this one."""

# A trial as short as they get.
SHORT_CASE = {"workload": "net.tcp_rr", "params": {"duration_s": 0.1, "warmup_s": 0}}
# The workload that is given bad arguments, and what its options are called.
WORKLOAD = "tcp_stream"
OPTIONS = {
    "count": "--streams",
    "threads": "1 to 512",
    "work": "--total-bytes",
    "choice": "--send-path",
    "choices": "sendfile",
}
