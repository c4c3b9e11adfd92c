"""How busy the host is, for those who ask: looks of some seconds, each in a thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.idle import LocalWatch
from hostbench.model.service import IdleAnswer, Refusal
from hostbench.web.problem import Problem

# A look reads /proc twice; many at a time would be the load they look for.
PROBES_MOST = 4


class IdleProbes:
    """The looks that are under way."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(PROBES_MOST, thread_name_prefix="look")
        self._interrupts: set[Interrupt] = set()

    async def look(self, seconds: float) -> IdleAnswer:
        """Raises Problem when there are too many already, or when the service ends."""
        if len(self._interrupts) >= PROBES_MOST:
            raise Problem(
                429,
                "too_many",
                f"{PROBES_MOST} looks are under way, the most at a time; ask again in a second",
                headers={"Retry-After": "1"},
            )
        interrupt = Interrupt()
        self._interrupts.add(interrupt)
        loop = asyncio.get_running_loop()
        look = loop.run_in_executor(self._threads, LocalWatch(window_s=seconds).look, interrupt)
        try:
            # Shielded: the descriptors are closed when the thread is done with them, not before.
            return await asyncio.shield(look)
        except Interrupted:
            raise Problem(503, Refusal.LACKING, "the service was asked to stop") from None
        except asyncio.CancelledError:
            interrupt.trip()
            raise
        finally:
            look.add_done_callback(lambda _: self._close(interrupt))

    def _close(self, interrupt: Interrupt) -> None:
        self._interrupts.discard(interrupt)
        interrupt.close()

    def end_all(self) -> None:
        """Ends every look; returns at once."""
        for interrupt in tuple(self._interrupts):
            interrupt.trip()
