"""How the CPU time of a function grows with what it is given."""

import time
from collections.abc import Callable


def growth(call: Callable[[int], object], small: int, large: int) -> float:
    """The CPU time of `call(large)` over that of `call(small)`, the lower of two."""
    call(small)
    return min(_cpu_s(call, large) / _cpu_s(call, small) for _ in range(2))


def _cpu_s(call: Callable[[int], object], size: int) -> float:
    began_s = time.process_time()
    call(size)
    return time.process_time() - began_s
