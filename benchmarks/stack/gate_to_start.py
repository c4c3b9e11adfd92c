"""The time from the idle gate's decision to the program's `start` event, and from the end of one
job to the start of the next.

    python -m benchmarks.stack.gate_to_start [JOBS]

Needs a running stack with nothing else to do.
"""

from typing import Any

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save, spread
from benchmarks.stack.jobs import client, result

JOBS = 20
SPEC = {
    "workload": "cpu.fma",
    "params": {"threads": 1, "duration_s": 0.2, "warmup_s": 0.05},
    "trials": 1,
    "idle_policy": "flag",
}


def seconds(document: dict[str, Any]) -> float:
    """Return the seconds from the gate's decision, which is in the record of the job, to the
    program's start event."""
    case = document["cases"][0]
    gate = case["idle"]
    start = next(event for event in case["trials"][0]["events"] if event["event"] == "start")
    return float(start["time_unix_s"] - gate["time_unix_s"] - gate["waited_s"])


def main() -> None:
    """Print the spread and save the raw figures."""
    jobs = given_number(JOBS)
    with client() as api:
        found = [seconds(result(api, SPEC)) for _ in range(jobs)]
    figures = spread(found)
    print(
        f"gate to start, {jobs} jobs: median {figures['median'] * 1e3:.1f} ms, "
        f"{figures['min'] * 1e3:.1f} to {figures['max'] * 1e3:.1f} ms"
    )
    save("stack/gate_to_start", [Entry({}, {"gate_to_start_s": found})])


if __name__ == "__main__":
    main()
