"""Stands in for likwid-bench where a test needs what the real one cannot be made to do.

PEER names the behaviour, PEER_MFLOPS the figure.
"""

import os
import re
import signal
import subprocess
import sys
import time

FOREVER_S = 600
KERNELS = "peakflops_avx_fma - scripted\npeakflops_avx512_fma - scripted\n"


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def figure(mflops: str) -> None:
    kernel = sys.argv[sys.argv.index("-t") + 1]
    say(f"Test: {kernel}\n")
    for thread, cpu in enumerate(sorted(os.sched_getaffinity(0))):
        say(f"Group: 0 Thread {thread} running on hwthread {cpu} - Vector length 1 Offset 0\n")
    say(f"MFlops/s:\t\t{mflops}\n")


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def hang() -> None:
    ignore_signals()
    time.sleep(FOREVER_S)


def in_a_session_of_its_own() -> None:
    """A grandchild that has left our session and process group and hears no signal."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hang()
        os._exit(0)
    os.wait()


def act(script: str) -> int:
    mflops = os.environ.get("PEER_MFLOPS", "1000.00")
    if script == "hang":
        say("beginning\n")
        hang()
    elif script == "sleeps":
        time.sleep(FOREVER_S)
    elif script == "garbage":
        say("\x1b[31mhello\x00 here is a figure: 12\n")
    elif script == "empty":
        pass
    elif script == "exit_3":
        figure(mflops)
        sys.stderr.write("cannot do it\n")
        return 3
    elif script == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif script == "nan":
        figure("nan")
    elif script == "zero":
        figure("0.00")
    elif script == "flood":
        while True:
            say("x" * 65536)
    elif script == "long":
        say("y" * 1_000_000 + "\n")
        figure(mflops)
    elif script == "hanging_grandchild":
        in_a_session_of_its_own()
        hang()
    elif script == "leaves_a_daemon":
        in_a_session_of_its_own()
        figure(mflops)
    elif script == "kills_its_group":
        subprocess.Popen(["sleep", str(FOREVER_S)])
        os.killpg(0, signal.SIGKILL)
    elif script == "other_cpus":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        figure(mflops)
    elif script == "writes_files":
        with open("left", "w") as file:  # noqa: PTH123
            file.write(os.environ["TMPDIR"])
        figure(mflops)
    elif script == "third_time":
        # The first runs measure, a later one hangs: something of ours is there already.
        count = os.environ["PEER_COUNT"]
        with open(count, "a") as file:  # noqa: PTH123
            file.write("x")
        if os.stat(count).st_size >= 3:  # noqa: PTH116
            hang()
        figure(mflops)
    else:
        figure(mflops)
    return 0


def main() -> int:
    script = os.environ.get("PEER", "")
    if sys.argv[1] == "-v":
        if script == "silent_version":
            hang()
        say("likwid-bench -- Version 9.9.9\n")
        return 0
    if sys.argv[1] == "-a":
        say(KERNELS)
        return 0
    if not re.fullmatch(r"N:\d+kB:\d+", sys.argv[-1]):
        return 2
    return act(script)


if __name__ == "__main__":
    sys.exit(main())
