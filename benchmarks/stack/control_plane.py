"""The share of a core that the control plane takes while a trial runs: orchestrator, Redis,
InfluxDB, the service that measures and three that do not, without containers.

    python -m benchmarks.stack.control_plane [TRIALS]

Starts all of these itself; InfluxDB is the one that scripts/influxdb.sh builds, if it was built.
"""

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save, spread
from tests.faults.stack import StackParts
from tests.stack.influx_server import SHIPPED_PROGRAM, ShippedInflux

TRIALS = 5
IDLE = ("mem", "disk", "net")
# The measured window begins SETTLE_S after the start of the trial, lasts WINDOW_S and ends before
# the trial does.
SETTLE_S, WINDOW_S, REST_S = 2.0, 20.0, 3.0
SPEC: dict[str, Any] = {
    "workload": "cpu.fma",
    "params": {"threads": 1, "dtype": "fp64", "duration_s": SETTLE_S + WINDOW_S + REST_S},
    "trials": 1,
    "idle_policy": "force",
}


def cpu_s(pid: int) -> float:
    """Return the CPU time that all threads of a process have used so far, including threads that
    have ended."""
    # The clock id that clock_getcpuclockid(3) returns for another process.
    return time.clock_gettime(~pid << 3 | 2)


def shares(parts: dict[str, int]) -> dict[str, float]:
    """Return the share of a core that each process takes during the next WINDOW_S."""
    before, from_s = {name: cpu_s(pid) for name, pid in parts.items()}, time.monotonic()
    time.sleep(WINDOW_S)
    seconds = time.monotonic() - from_s
    return {name: (cpu_s(pid) - before[name]) / seconds for name, pid in parts.items()}


def main() -> None:
    """Print the spread of each part and of their sum, and save the raw figures."""
    trials = given_number(TRIALS)
    found: list[dict[str, float]] = []
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        parts = stack.enter_context(StackParts(root))
        environment = {}
        with parts.redis.client() as client:
            client.config_set("hz", 1)  # as compose.yaml has it
        pids = {"redis": parts.redis.pid}
        if SHIPPED_PROGRAM.exists():
            influx = stack.enter_context(ShippedInflux(root / "influx"))
            influx.set_up()
            pids["influxdb"] = influx.pid
            environment = influx.settings
        orchestrator = parts.orchestrator(**environment)
        service = parts.host(orchestrator)
        pids |= {"orchestrator": orchestrator.pid, "service": service.pid}
        for name in IDLE:
            pids[f"idle {name}"] = parts.host(orchestrator, subsystem=name).pid
        # The first trial is not counted: InfluxDB is busy for a while after its start.
        for number in range(1 + trials):
            job = orchestrator.submit(**SPEC)
            service.wait_for_program()
            time.sleep(SETTLE_S)
            found.append(shares(pids))
            assert service.program_pids(), "the trial has ended before the window"
            assert orchestrator.wait_for(job)["state"] == "succeeded"
            print(number, {name: f"{share:.3%}" for name, share in found[-1].items()})
        del found[0]
    columns = {name: [one[name] for one in found] for name in pids}
    for name, values in {**columns, "all": [sum(one.values()) for one in found]}.items():
        figures = spread(values)
        print(
            f"{name}: median {figures['median']:.3%}, {figures['min']:.3%} to {figures['max']:.3%}"
        )
    save("stack/control_plane", [Entry({}, columns)])


if __name__ == "__main__":
    main()
