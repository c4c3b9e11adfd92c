"""What a peer has to know of the case of ours that it stands beside."""

from dataclasses import dataclass
from typing import Self

from hostbench.programs.peer import Params
from hostbench.programs.tools.pages import HUGE, Pages
from services.mem.params import BLOCK, PAGES, PATTERN, RANDOM, SIZE, THREADS

# Where a suite leaves the size to the program: the least that STREAM's rule leads to.
BYTES_A_THREAD = 320_000_000
MAKESPAN, BEST = "bytes_per_second_makespan", "bytes_per_second_best"


@dataclass(frozen=True)
class Case:
    """`size_bytes` is the working set of all threads together, `plain_passes`: it goes over it
    from one end to the other, pass after pass, and not block by block."""

    size_bytes: int
    pages: Pages
    plain_passes: bool

    @classmethod
    def of(cls, params: Params) -> Self:
        """The case with these parameters, resolved by a trial or as a suite has them."""
        size, threads = _count(params, SIZE), _count(params, THREADS)
        return cls(
            size_bytes=size or (threads or 1) * BYTES_A_THREAD,
            pages=Pages(str(params.get(PAGES) or HUGE)),
            plain_passes=params.get(PATTERN) != RANDOM and not params.get(BLOCK),
        )


def _count(params: Params, name: str) -> int | None:
    """A whole number that is given; None where it is left to the program."""
    value = params.get(name)
    return int(value) if isinstance(value, int | float) else None
