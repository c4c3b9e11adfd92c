"""Registers this service with the orchestrator, and renews the registration every few seconds."""

import asyncio
import contextlib
import random
import secrets

import httpx
import structlog

from hostbench.base.tls import trusting
from hostbench.host.lock import fence_of, held_outside
from hostbench.model.service import Registered, Registration
from hostbench.remote.client import ANSWER_S_MOST, HOST_S_MOST, KEEP_ALIVE_S
from hostbench.service.metrics import Metrics
from hostbench.service.runner import TrialRunner
from hostbench.service.settings import Settings
from hostbench.web.keys import OwnKey
from hostbench.web.problem import ProblemDetails

RENEW_S = 15.0
RENEW_S_LEAST = 1.0
RETRY_S_FIRST, RETRY_S_MOST = 0.5, 15.0
# Before it answers a new service, the orchestrator fetches table and inventory; for a renewal it
# fetches nothing.
TAKE_UP_S_MOST = ANSWER_S_MOST + HOST_S_MOST + 10.0
RENEWAL_S_MOST = 10.0
# How often the lock of a held host is checked, so that its jobs start soon after it is free.
HELD_LOOK_S = 1.0
_log = structlog.get_logger()


class Registrar:
    """Renews the registration until it is cancelled; never during a trial. `has_registered`: the
    orchestrator has accepted this service once."""

    def __init__(
        self, settings: Settings, key: OwnKey, runner: TrialRunner, metrics: Metrics
    ) -> None:
        assert settings.orchestrator_url is not None and settings.url is not None
        self._address = f"{settings.orchestrator_url}/hosts"
        self._ca_file = settings.ca_file
        self._runner = runner
        self._metrics = metrics
        self._lock = settings.lock
        self._key = key
        self._registration = Registration(
            host=settings.host,
            subsystem=settings.subsystem,
            url=settings.url,
            instance=secrets.token_hex(8),
        )
        self._held_by: str | None = None
        self._look_again = asyncio.Event()
        self._trouble: str | None = None  # None: not tried yet
        self.has_registered = False

    async def run(self) -> None:
        """Register and renew until cancelled."""
        context = trusting(self._ca_file)
        # Longer than the time between renewals: a new connection costs more than the call.
        limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
        async with httpx.AsyncClient(
            verify=context, timeout=RENEWAL_S_MOST, limits=limits, trust_env=False
        ) as client:
            wait_s, retry_s = 0.0, RETRY_S_FIRST
            while True:
                await self._pause(wait_s)
                await self._runner.quiet()
                renew_s = await self._register(client)
                if renew_s is None:
                    # A random part, so that not all services call at once when the orchestrator is
                    # back.
                    wait_s = retry_s * random.uniform(0.5, 1.0)  # noqa: S311
                    retry_s = min(RETRY_S_MOST, retry_s * 2)
                else:
                    wait_s, retry_s = renew_s, RETRY_S_FIRST

    def look_again(self) -> None:
        """Register at once, because another process holds the host."""
        if self._held_by is None:
            self._look_again.set()

    async def _pause(self, seconds: float) -> None:
        """Wait until it is time, the lock of a held host is free, or `look_again` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._held_by is not None and held_outside(self._lock) is not None:
                    await asyncio.sleep(HELD_LOOK_S)
                if self._held_by is None:
                    await self._look_again.wait()
        self._look_again.clear()

    async def _register(self, client: httpx.AsyncClient) -> float | None:
        """Register; return when to renew, or None when it failed."""
        known = self._trouble == ""
        answer_s = RENEWAL_S_MOST if known else TAKE_UP_S_MOST
        try:
            answer = await client.post(
                self._address,
                content=self._present().model_dump_json(),
                headers={
                    "Authorization": f"Bearer {self._key.current()}",
                    "Content-Type": "application/json",
                },
                timeout=httpx.Timeout(RENEWAL_S_MOST, read=answer_s),
            )
            if not answer.is_success:
                self._failed(f"HTTP status {answer.status_code}: {_detail(answer)}")
                return None
            renew_s = Registered.model_validate_json(answer.content).renew_s
        except (httpx.HTTPError, ValueError) as error:
            self._failed(f"{type(error).__name__}: {error}")
            return None
        self._metrics.registrations.labels(outcome="ok").inc()
        if self._trouble != "":
            _log.info("registered", orchestrator=self._address, renew_s=renew_s)
        self._trouble = ""
        self.has_registered = True
        return min(RENEW_S, max(RENEW_S_LEAST, renew_s))

    def _present(self) -> Registration:
        self._held_by = held_outside(self._lock)
        update = {"fence": fence_of(self._lock), "held_by": self._held_by}
        return self._registration.model_copy(update=update)

    def _failed(self, why: str) -> None:
        """Log a failure once, not at every attempt."""
        self._metrics.registrations.labels(outcome="failed").inc()
        if why != self._trouble:
            _log.warning("registration_fails", orchestrator=self._address, why=why)
        self._trouble = why


def _detail(answer: httpx.Response) -> str:
    """Return the detail of an orchestrator's answer, or the beginning of any other answer."""
    try:
        return ProblemDetails.model_validate_json(answer.content).detail
    except ValueError:
        return answer.text[:200]
