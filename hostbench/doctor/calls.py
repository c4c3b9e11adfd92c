"""System calls for facts that no file shows. Their arguments have no side effects."""

import ctypes
import os
import platform
import time
from dataclasses import dataclass

# The same number on every architecture but Alpha.
IO_URING_SETUP = 425
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}


@dataclass(frozen=True)
class Calls:
    """The kernel's answers. An error number says how a call was refused; None: not called.

    `io_uring_errno` and `perf_event_errno` come from calls with a null pointer: EFAULT means that
    the call passed everything that could forbid it.
    """

    clock_resolution_s: float
    io_uring_errno: int | None
    perf_event_errno: int | None


def ask() -> Calls:
    """Make the calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    perf = PERF_EVENT_OPEN.get(platform.machine())
    none, no_flags = -1, 0
    return Calls(
        clock_resolution_s=time.clock_getres(time.CLOCK_MONOTONIC),
        io_uring_errno=_error_of(libc, IO_URING_SETUP, 1, None),
        perf_event_errno=(
            None if perf is None else _error_of(libc, perf, None, 0, none, none, no_flags)
        ),
    )


def _error_of(libc: ctypes.CDLL, number: int, *arguments: int | None) -> int | None:
    words = [ctypes.c_void_p(one) if one is None else ctypes.c_long(one) for one in arguments]
    answer = libc.syscall(ctypes.c_long(number), *words)
    if answer >= 0:  # no kernel should accept a null pointer
        os.close(answer)
        return None
    return ctypes.get_errno()
