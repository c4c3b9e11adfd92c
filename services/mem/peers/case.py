"""What a peer has to know of the case of ours that it stands beside."""

from dataclasses import dataclass
from typing import Self

from hostbench.base.units import human
from hostbench.programs.peer import Params
from hostbench.programs.tools.pages import HUGE, Pages
from hostbench.programs.tools.reading import ROUNDING
from services.mem.params import BLOCK, PAGES, PATTERN, RANDOM, SIZE, STORE, THREADS

# Where a suite leaves the size to the program: the least that STREAM's rule leads to.
BYTES_A_THREAD = 320_000_000
PLAIN, NON_TEMPORAL, LIBC = "plain", "nt", "libc"
_STORES = {
    PLAIN: "plain stores",
    NON_TEMPORAL: "non-temporal stores",
    LIBC: "stores that the C library chooses by size",
}
MAKESPAN, BEST = "bytes_per_second_makespan", "bytes_per_second_best"


@dataclass(frozen=True)
class Case:
    """`size_bytes` is the working set of all threads together, `plain_passes`: it goes over it
    from one end to the other, pass after pass, and not block by block. `store`: how results are
    stored, None of a workload that stores none."""

    size_bytes: int
    pages: Pages
    plain_passes: bool
    store: str | None = None

    @classmethod
    def of(cls, params: Params) -> Self:
        """The case with these parameters, resolved by a trial or as a suite has them."""
        size, threads = _count(params, SIZE), _count(params, THREADS)
        return cls(
            size_bytes=size or (threads or 1) * BYTES_A_THREAD,
            pages=Pages(str(params.get(PAGES) or HUGE)),
            plain_passes=params.get(PATTERN) != RANDOM and not params.get(BLOCK),
            store=None if params.get(STORE) is None else str(params.get(STORE)),
        )

    def other_store(self, store: str) -> tuple[str, ...]:
        """How a tool differs that stores like this (Survey.differs)."""
        if self.store in (None, store):
            return ()
        return (f"{_STORES[store]}; ours {_STORES.get(str(self.store), str(self.store))}",)

    def other_size(self, size_bytes: int) -> tuple[str, ...]:
        """How a tool differs that has a working set of this size."""
        if abs(size_bytes / self.size_bytes - 1) <= ROUNDING:
            return ()
        theirs, ours = (human(size, "byte") for size in (size_bytes, self.size_bytes))
        return (f"a working set of {theirs}; ours {ours}",)


def _count(params: Params, name: str) -> int | None:
    """A whole number that is given; None where it is left to the program."""
    value = params.get(name)
    return int(value) if isinstance(value, int | float) else None
