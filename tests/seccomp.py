"""System calls that are refused, as the default profile of a container engine refuses them."""

import ctypes
import errno
import os
import struct
from collections.abc import Callable

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBERS = {
    "x86_64": {
        "mbind": 237,
        "set_mempolicy": 238,
        "get_mempolicy": 239,
        "move_pages": 279,
        "io_setup": 206,
        "io_uring_setup": 425,
        "fsetxattr": 190,
        "fallocate": 285,
        "cachestat": 451,
    },
    "aarch64": {
        "mbind": 235,
        "get_mempolicy": 236,
        "set_mempolicy": 237,
        "move_pages": 239,
        "io_setup": 0,
        "io_uring_setup": 425,
        "fsetxattr": 7,
        "fallocate": 47,
        "cachestat": 451,
    },
}
# Those of NUMA that Docker's default profile keeps for CAP_SYS_NICE.
OF_NUMA = ("mbind", "set_mempolicy", "get_mempolicy", "move_pages")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refusing(*names: str) -> Callable[[], None]:
    """What a child process calls before it becomes a program: `names` fail with EPERM."""
    numbers = [NUMBERS[os.uname().machine][name] for name in names]
    instruction = struct.Struct("=HBBI")
    code = instruction.pack(LOAD_WORD, 0, 0, 0)  # the number of the call
    for i, number in enumerate(numbers):
        code += instruction.pack(JUMP_IF_EQUAL, len(numbers) - i, 0, number)
    code += instruction.pack(RETURN, 0, 0, ALLOW)
    code += instruction.pack(RETURN, 0, 0, ERRNO | errno.EPERM)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // instruction.size, code)

    def refuse() -> None:
        assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        filtering = libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)
        assert filtering == 0, os.strerror(ctypes.get_errno())

    return refuse
