"""A process that takes a part of a CPU: `python hog.py CPU COMPUTING_S PERIOD_S`.

It computes for so long in every period, at ordinary priority, until its standard input ends; what
it needs between two turns is part of that. Then it writes, as JSON, when each turn began and the
CPU time that it had taken by then.
"""

import json
import os
import select
import sys
import time


def turns(computing_s: float, period_s: float) -> list[tuple[float, float]]:
    """The turns taken until the input ends: when each began, and the CPU time until then. One that
    is due while another still computes is left out."""
    taken: list[tuple[float, float]] = []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    due, allowed_s = time.monotonic(), time.thread_time()
    while True:
        due += period_s
        if due < time.monotonic():
            continue
        if select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
            return taken
        taken.append((time.monotonic(), time.thread_time()))
        allowed_s += computing_s
        while time.thread_time() < allowed_s:
            pass


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    sys.stdout.write(json.dumps(turns(float(sys.argv[2]), float(sys.argv[3]))))
