"""Becomes the command that follows it, to which the kernel gives no transparent huge pages, nor to
what that starts: prctl(2), PR_SET_THP_DISABLE. Run as a file; it needs the standard library only.
"""

import ctypes
import os
import sys

# include/uapi/linux/prctl.h
PR_SET_THP_DISABLE = 41


def main() -> None:
    """Replace this process. Raise OSError when it is refused, or there is no such command."""
    on = ctypes.c_ulong(1)
    unused = ctypes.c_ulong(0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_THP_DISABLE, on, unused, unused, unused) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE) is refused")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606


if __name__ == "__main__":
    main()
