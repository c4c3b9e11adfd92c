"""How long leases and registrations last without a renewal, counted by each orchestrator.

Redis counts a time to live by its wall clock, which an administrator or NTP may set. So a renewal
only leaves a new sign of life in Redis. Each orchestrator counts for itself how long a sign has
stayed the same, with a clock that cannot be set, and only while it really watches. So a suspended
machine, or an unreachable Redis, ends nothing.
"""

import time
from collections.abc import Mapping

from orchestrator.queue.jobs import ALIVE_S, LEASE_S

# The scheduler looks this often, and no more often: a trial may be running.
LOOK_S = 2.5
# At most this much counts between two looks.
STEP_S_MOST = LOOK_S + 1.0


class SignWatch:
    """What one orchestrator has seen of the signs of life."""

    def __init__(self) -> None:
        self._looked_s = time.monotonic()
        self._watched_s = 0.0
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self, signs: Mapping[str, str]) -> None:
        """Record all present signs of life."""
        now_s = time.monotonic()
        self._watched_s += min(now_s - self._looked_s, STEP_S_MOST)
        self._looked_s = now_s
        self._seen = {name: self._since(name, sign) for name, sign in signs.items()}

    def _since(self, name: str, sign: str) -> tuple[str, float]:
        before = self._seen.get(name)
        return before if before and before[0] == sign else (sign, self._watched_s)

    def silent(self) -> dict[str, str]:
        """Return the signs that were the same for as long as a lease or registration lasts."""
        return {
            name: sign
            for name, (sign, since_s) in self._seen.items()
            if self._watched_s - since_s >= (LEASE_S if name.startswith("lease:") else ALIVE_S)
        }
