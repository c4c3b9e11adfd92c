"""Stands in for the program it is named like, where a test needs what the real one cannot be made
to do.

SCRIPT, or a file `script` beside this one, names the behaviour. The table is the real program's,
from a file beside this one, too.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAME = Path(__file__).name
TABLE = Path(__file__).with_name(f"{NAME}.json")
FOREVER_S = 600


def behaviour() -> str:
    """What this program does; the file has a say where one service serves several tests."""
    file = Path(__file__).with_name("script")
    return file.read_text() if file.exists() else os.environ.get("SCRIPT", "")


def say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def resolved(table: dict[str, Any], workload: str, arguments: list[str]) -> dict[str, Any]:
    """The parameters as the real program would resolve them, near enough."""
    params = next(one["params"] for one in table["workloads"] if one["name"] == workload)
    given = dict(argument[2:].split("=", 1) for argument in arguments if "=" in argument)
    values: dict[str, Any] = {}
    for param in params:
        name = param["name"]
        value = given.get(name.replace("_", "-"), param["default"])
        if param["scope"] == "host":
            continue
        numeric = param["type"] in ("count", "number") and value not in (None, "all")
        values[name] = float(value) if numeric else value
    values["threads"] = 1 if values["threads"] == "all" else int(values["threads"])
    return values


def start(workload: str, params: dict[str, Any]) -> dict[str, Any]:
    cpus = sorted(os.sched_getaffinity(0))
    return {
        "event": "start",
        "schema": 1,
        "program": NAME,
        "version": "0.1.0",
        "workload": workload,
        "params": params,
        "placement": {
            "cpus": cpus[:1],
            "affinity": cpus,
            "cores": 1,
            "sockets": 1,
            "smt_shared": False,
            "oversubscribed": False,
            "policy": "cores_first",
            "quota_cpus": None,
            "cpuset": None,
            "cgroup": None,
        },
        "clock": {"source": "CLOCK_MONOTONIC", "resolution_s": 1e-8, "read_s": 2e-8},
        "time_unix_s": time.time(),
    }


def end(table: dict[str, Any], workload: str, rate: float) -> dict[str, Any]:
    (metrics,) = (one["metrics"] for one in table["workloads"] if one["name"] == workload)
    (primary,) = (metric["name"] for metric in metrics if metric["primary"])
    clocked = any(metric["name"] == "clock_hertz" for metric in metrics)
    return {
        "event": "end",
        "metrics": {primary: rate} | ({"clock_hertz": 3e9} if clocked else {}),
        "basis": "clean_slices",
        "threads": [],
        "disturbance": {
            "cpu_ratio": 1.0,
            "wait_s": 0,
            "involuntary_switches": 0,
            "steal_s": 0,
            "psi_cpu_some_s": 0,
            "throttled_s": 0,
            "clean_slice_ratio": 1,
            "harness_ratio": 0.001,
        },
        "verified": True,
        "elapsed_s": 0.5,
        "reasons": {},
    }


def written_to_scratch() -> str:
    """Add a page to the file that was handed over; which one that is, and how long it was."""
    given = dict(argument[2:].split("=", 1) for argument in sys.argv if "=" in argument)
    descriptor = int(given["scratch-fd"])
    status = os.fstat(descriptor)
    os.pwrite(descriptor, bytes(4096), status.st_size)
    return f"{status.st_ino} {status.st_size} {status.st_nlink}"


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def act(script: str, begun: dict[str, Any], done: dict[str, Any]) -> int:
    """Everything after the start event; returns the exit code."""
    if script == "garbage":
        sys.stdout.write("hello, here is a figure: 12\n")
    elif script == "nan":
        done["metrics"] = dict.fromkeys(done["metrics"], float("nan"))
        sys.stdout.write(json.dumps(done) + "\n")
    elif script == "cut":
        sys.stdout.write(json.dumps(done)[:100])
    elif script == "endless_line":
        while True:
            sys.stdout.write("x" * 65536)
    elif script == "crash":
        sys.stderr.write("about to crash\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGSEGV)
    elif script == "no_last_event":
        sys.stderr.write("gave up\n")
    elif script == "contradiction":
        say(done)
        return 1
    elif script == "hang":
        ignore_signals()
        time.sleep(FOREVER_S)
    elif script == "hang_after_end":
        ignore_signals()
        say(done)
        time.sleep(FOREVER_S)
    elif script == "hang_closed":
        ignore_signals()
        say(done)
        os.close(1)
        time.sleep(FOREVER_S)
    elif script == "child_left_behind":
        subprocess.Popen(["sleep", str(FOREVER_S)], stdout=subprocess.DEVNULL)
        say(done)
    elif script == "other_params":
        say(begun | {"event": "start"})
    elif script == "wrong":
        say({"event": "error", "code": "wrong_result", "message": "lane 3 is 1.5, not 1.25"})
        return 5
    elif script == "no_memory":
        say({"event": "error", "code": "resource", "message": "no memory; ask for less"})
        return 3
    elif script == "replaced":
        Path(__file__).touch()
        say(done)
    elif script == "warns":
        say({"event": "warning", "code": "odd_clock", "message": "the clock is odd"})
        say(done)
    elif script == "scratch":
        say({"event": "warning", "code": "scratch", "message": written_to_scratch()})
        say(done)
    elif script == "sleeps":
        time.sleep(begun["params"]["duration_s"])
        say(done)
    elif script == "slow":
        time.sleep(0.5)
        say(done)
    elif script == "slower":
        time.sleep(4)
        say(done)
    else:
        say(done)
    return 0


def main() -> int:
    table = json.loads(TABLE.read_text())
    script = behaviour()
    if sys.argv[1] == "--list":
        if script == "list_garbage":
            sys.stdout.write("no table\n")
        elif script == "list_fails":
            sys.stderr.write("cannot list\n")
            return 1
        else:
            sys.stdout.write(json.dumps(table))
        return 0
    workload, *arguments = sys.argv[1:]
    begun = start(workload, resolved(table, workload, arguments))
    say(begun)
    rate = float(os.environ.get("SCRIPT_RATE", "1e9"))
    return act(script, begun, end(table, workload, rate))


if __name__ == "__main__":
    sys.exit(main())
