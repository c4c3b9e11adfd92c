"""The trials and sessions of this service: at most one of them holds the host, others wait to be
refused.

Everything here happens on the event loop; each trial has a thread, which reports back to it.
"""

import asyncio
import contextlib

import structlog

from hostbench.model.service import Ending, Refusal
from hostbench.service.metrics import Metrics
from hostbench.service.trial import AdmittedCall, Item, RunningTrial
from hostbench.service.work import KeptScratch
from hostbench.web.problem import Problem

# A caller that reads so much slower than its trial speaks is given up.
UNREAD_MOST = 100_000
_log = structlog.get_logger()


class TrialRunner:
    """Begins, renews and ends trials."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.scratch = KeptScratch()
        self._trials: dict[str, RunningTrial] = {}
        self._ending = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    def begin(self, call: AdmittedCall) -> tuple[RunningTrial, "asyncio.Queue[Item]"]:
        """Starts a trial or session; what it says appears in the queue, `None` last.

        Raises Problem when the service ends or one of that name runs, or ResourceError.
        """
        if self._ending:
            raise Problem(503, Refusal.LACKING, "the service is about to end; try another time")
        if call.id in self._trials:
            raise Problem(
                409,
                Refusal.BUSY,
                f"{call.kind} {call.id} runs already; give each an id of its own",
            )
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[Item] = asyncio.Queue()

        def take(item: Item) -> None:
            items.put_nowait(item)
            if items.qsize() > UNREAD_MOST:
                trial.end(Ending.CALLER_GONE)

        def put(item: Item) -> None:
            # Closed: the service is gone, and with it the connection.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(take, item)

        def finished(trial: RunningTrial, outcome: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._forget, trial, outcome)

        trial = RunningTrial(call, put, finished, self._busy_for_s)
        trial.start()
        # Only now: it may not have started. It cannot be forgotten yet, for that happens here too.
        self._trials[call.id] = trial
        self._quiet.clear()
        self._metrics.running.inc()
        _log.info(
            f"{call.kind}_begins", trial=call.id, tool=call.request.tool, fence=call.claim.fence
        )
        return trial, items

    def _forget(self, trial: RunningTrial, outcome: str) -> None:
        call = trial.call
        del self._trials[call.id]
        self._metrics.running.dec()
        self._metrics.count(call.kind, call.request.tool, outcome)
        _log.info(f"{call.kind}_ends", trial=call.id, outcome=outcome)
        if not self._trials:
            self._quiet.set()

    def _busy_for_s(self) -> float | None:
        """What is left of the lease of the trial that holds the host, when it is one of ours."""
        left = [one.lease.left_s for one in tuple(self._trials.values()) if one.holds_lock]
        return max(left, default=None)

    def renew(self, trial_id: str) -> bool:
        """Whether a trial of that name runs; its lease begins anew."""
        trial = self._trials.get(trial_id)
        if trial is not None:
            trial.lease.renew()
        return trial is not None

    def end_all(self) -> None:
        """Ends every trial and begins no other; returns at once."""
        self._ending = True
        for trial in tuple(self._trials.values()):
            trial.end(Ending.SERVICE_ENDS)

    async def quiet(self) -> None:
        """Returns when no trial runs."""
        await self._quiet.wait()
