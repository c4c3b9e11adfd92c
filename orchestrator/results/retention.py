"""Removes the oldest ended jobs, with journal, document and report, if the operator has set a
limit. Points in InfluxDB stay."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog
from redis.exceptions import RedisError

from hostbench.model.jobs import TERMINAL
from hostbench.results.ids import submitted_unix_s
from orchestrator.queue.jobs import JobStore
from orchestrator.results.archive import Archive
from orchestrator.results.limits import Limits

SWEEP_S = 3600.0
STOP_S = 1.0
DAY_S = 86400.0
# Renamed so that no search finds the job while its files are being removed.
REMOVED = ".removed-"
_log = structlog.get_logger()


class Retention:
    """Checks the limits every hour, on a thread. Several orchestrators may do so at once."""

    def __init__(
        self,
        limits: Limits,
        archive: Archive,
        jobs: JobStore,
        forget_rejected: Callable[[float], None] | None,
    ) -> None:
        """`forget_rejected` removes the points that InfluxDB refused before a given time."""
        self.limits = limits
        self._archive = archive
        self._jobs = jobs
        self._forget_rejected = forget_rejected
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Start to check, if there is a limit."""
        if self.limits != Limits():
            self._thread.start()

    def close(self) -> None:
        """End the thread, or leave it behind if the disk is slow: the next check removes the
        rest."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while True:
            try:
                self.sweep()
            except (RedisError, OSError) as error:
                _log.warning("retention_waits", why=str(error))
            if self._closed.wait(SWEEP_S):
                return

    def sweep(self) -> None:
        """Remove what exceeds the limits. Raise RedisError or OSError."""
        for left in self._archive.results.root.glob(f"{REMOVED}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._sweep_results()
        if self._forget_rejected is not None and self.limits.rejected_days is not None:
            self._forget_rejected(time.time() - self.limits.rejected_days * DAY_S)

    def _sweep_results(self) -> None:
        days, most = self.limits.results_days, self.limits.results_bytes
        jobs = self._archive.results.ids()
        if days is not None:
            until = time.time() - days * DAY_S
            # No job ends before it was submitted.
            for job_id in [one for one in jobs if submitted_unix_s(one) < until]:
                self._remove(job_id, ended_before=until)
        if most is not None:
            sizes = {one: _size_bytes(self._archive.directory(one).path) for one in jobs}
            excess = sum(sizes.values()) - most
            for job_id in jobs:
                if excess <= 0:
                    return
                if self._remove(job_id, ended_before=time.time()):
                    excess -= sizes[job_id]

    def _remove(self, job_id: str, ended_before: float) -> bool:
        """Remove the job if it ended before that time; return whether it was removed."""
        view = self._jobs.view(job_id) or self._archive.view(job_id)
        path = self._archive.directory(job_id).path
        if view is None or view.state not in TERMINAL:
            return False
        if (view.ended_unix_s or view.submitted_unix_s) >= ended_before:
            return False
        removed = path.with_name(REMOVED + job_id)
        with contextlib.suppress(FileNotFoundError):  # another orchestrator was first
            path.rename(removed)
            shutil.rmtree(removed)
            _log.info("results_removed", job=job_id, limits=self.limits.text)
        return True


def _size_bytes(path: Path) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError):
        for one in path.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += one.stat().st_blocks * 512
    return total
