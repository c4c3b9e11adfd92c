"""How long tests wait. Whatever happens ends a wait at once; these are for what does not happen.

Other work may hold a machine's CPUs for seconds, so no wait is as short as what the product does
on an idle host.
"""

import time
from collections.abc import Callable
from typing import TypeVar

# For what must come true some time.
PATIENCE_S = 60.0
# For what must happen soon: far shorter than what goes on when it does not (a minute or more).
SOON_S = 20.0

Found = TypeVar("Found")


def wait_until(
    finds: Callable[[], Found], what: Callable[[], object] = str, seconds: float = PATIENCE_S
) -> Found:
    """What it finds, once that is true; `what` describes a failure."""
    until_s = time.monotonic() + seconds
    while not (found := finds()):
        assert time.monotonic() < until_s, what()
        time.sleep(0.02)
    return found


def quickest(measured_s: Callable[[], float], most_s: float, tries: int = 8) -> float:
    """The shortest of a few times, no more of them than it takes to have one below `most_s`: other
    work may slow any of them down."""
    shortest_s = measured_s()
    for _ in range(tries - 1):
        if shortest_s < most_s:
            break
        shortest_s = min(shortest_s, measured_s())
    return shortest_s


def comes_true(holds: Callable[[], object], seconds: float = SOON_S) -> bool:
    """Whether it holds before the time is over."""
    until_s = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True
