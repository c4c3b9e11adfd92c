"""The newest statuses of all hosts with a stored job, for GET /metrics and the console.

No call reads a document. It shows what the index of figures has; decisions about jobs keep the
index up to date, and a separate process does if no decision is requested.
"""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from hostbench.base.errors import HostbenchError
from hostbench.base.interrupt import Interrupt
from hostbench.decisions.index import index_stamp, is_stale, newest_statuses
from hostbench.model.decision import SubsystemStatus
from hostbench.page.series import exposition
from hostbench.web.problem import Problem

# How often scrapes may look for new documents. The process that reads them uses a CPU for a moment,
# so it comes rarely while jobs run here, and where it was in vain: in a directory that may not be
# written, no index stays.
LOOK_S = 30.0
LOOK_RARELY_S = 600.0
_log = structlog.get_logger()


class MonitoredHosts:
    """The hosts in one results directory."""

    def __init__(
        self,
        results: Path,
        refresh: Callable[[Interrupt], None],
        busy: Callable[[], bool],
        ending: Interrupt,
    ) -> None:
        """`refresh` updates the index of figures, until `ending` comes; `busy`: jobs run here."""
        self._results = results
        self._refresh = refresh
        self._busy = busy
        self._ending = ending
        self._lock = threading.Lock()
        self._made_of: tuple[int, ...] | None = None
        self._statuses: list[SubsystemStatus] = []
        self._text: bytes | None = None
        self._looked_s: float | None = None
        self._in_vain = False
        self._reading = False
        self._looking: threading.Thread | None = None

    def text(self) -> bytes:
        """Return the series in Prometheus' text format, as the index has them."""
        with self._lock:
            self._update()
            if self._text is None:
                self._text = exposition(self._statuses)
            return self._text

    def statuses(self) -> list[SubsystemStatus]:
        """Return the newest status of each subsystem of each host, as the index has them."""
        with self._lock:
            self._update()
            return self._statuses

    @property
    def reading(self) -> bool:
        """Whether new documents are being read. The figures lack those until then."""
        return self._reading

    def look(self) -> None:
        """Have new documents read soon, if it is time to."""
        with self._lock:
            self._look()

    def _update(self) -> None:
        self._look()
        stamp = index_stamp(self._results)
        if stamp != self._made_of:
            # Without an index that can be read, the last ones stay; the next call retries.
            with contextlib.suppress(sqlite3.Error):
                self._statuses = newest_statuses(self._results)
                self._text = None
                self._made_of = stamp

    def close(self) -> None:
        """Wait for the thread that reads new documents; `ending` has come."""
        if self._looking is not None:
            self._looking.join()

    def _look(self) -> None:
        """Look for new documents, on a thread, if it is time to."""
        now_s = time.monotonic()
        every_s = LOOK_RARELY_S if self._busy() or self._in_vain else LOOK_S
        if self._looked_s is not None and now_s - self._looked_s < every_s:
            return
        if self._looking is not None and self._looking.is_alive():
            return
        self._looked_s = now_s
        self._looking = threading.Thread(target=self._read_new, name="monitored", daemon=True)
        self._looking.start()

    def _read_new(self) -> None:
        try:
            if is_stale(self._results):
                self._in_vain = self._reading = True
                self._refresh(self._ending)
                self._in_vain = is_stale(self._results)
        except (HostbenchError, Problem, OSError) as error:
            _log.warning("index_not_updated", reason=str(error))
        except asyncio.CancelledError:
            pass  # the orchestrator ends
        finally:
            self._reading = False
