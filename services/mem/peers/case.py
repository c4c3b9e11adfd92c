"""What a peer must know about our case."""

from dataclasses import dataclass
from typing import Self

from hostbench.base.units import human
from hostbench.programs.peer import Params
from hostbench.programs.tools.pages import HUGE, Pages
from hostbench.programs.tools.reading import ROUNDING
from services.mem.params import BLOCK, PAGES, PATTERN, RANDOM, SIZE, STORE, THREADS

# If a suite leaves the size to the program: the least size by STREAM's rule.
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
    """Our case.

    `size_bytes` is the working set of all threads together. `plain_passes`: it goes over the set
    from one end to the other, pass after pass, not block by block. `store`: how results are stored;
    None for a workload that stores none.
    """

    size_bytes: int
    pages: Pages
    plain_passes: bool
    store: str | None = None

    @classmethod
    def of(cls, params: Params) -> Self:
        """Return the case with these parameters, as a trial resolved them or as a suite has
        them."""
        size, threads = _count(params, SIZE), _count(params, THREADS)
        return cls(
            size_bytes=size or (threads or 1) * BYTES_A_THREAD,
            pages=Pages(str(params.get(PAGES) or HUGE)),
            plain_passes=params.get(PATTERN) != RANDOM and not params.get(BLOCK),
            store=None if params.get(STORE) is None else str(params.get(STORE)),
        )

    def other_store(self, store: str) -> tuple[str, ...]:
        """Return how a tool differs that stores in this way (Survey.differs)."""
        if self.store in (None, store):
            return ()
        return (f"{_STORES[store]}; ours {_STORES.get(str(self.store), str(self.store))}",)

    def other_size(self, size_bytes: int) -> tuple[str, ...]:
        """Return how a tool differs that has a working set of this size."""
        if abs(size_bytes / self.size_bytes - 1) <= ROUNDING:
            return ()
        theirs, ours = (human(size, "byte") for size in (size_bytes, self.size_bytes))
        return (f"a working set of {theirs}; ours {ours}",)


def _count(params: Params, name: str) -> int | None:
    """Return a given whole number, or None if it is left to the program."""
    value = params.get(name)
    return int(value) if isinstance(value, int | float) else None
