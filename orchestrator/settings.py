"""The settings of the orchestrator: docs/api.md lists the variables."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from hostbench.base.config import url_of
from hostbench.base.errors import ResourceError
from hostbench.results.ids import results_directory
from hostbench.web.settings import Key, ReadableFile, ServerSettings
from orchestrator.influx.options import InfluxSettings
from orchestrator.queue.address import RedisSettings, RedisUrl
from orchestrator.results.limits import Limits

DEFAULT_LISTEN = "127.0.0.1:8000"
DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"


def _writable(path: Path) -> Path:
    """Return the directory, created and checked for writing now rather than after the first job has
    measured."""
    path = path.absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK | os.X_OK)
    except OSError as error:
        raise ResourceError(
            f"HOSTBENCH_RESULTS {path} cannot be made: {error.strerror}; name another directory"
        ) from None
    if not writable:
        raise ResourceError(
            f"HOSTBENCH_RESULTS {path} may not be written by user {os.getuid()}; give it the right "
            "or name another directory"
        )
    return path


_Days = Annotated[
    float | None,
    Field(
        gt=0,
        allow_inf_nan=False,
        title="a number of days above 0",
        description="give one such as 90, or nothing to keep them for ever",
    ),
]


class Settings(ServerSettings, RedisSettings, InfluxSettings):
    """All settings of the orchestrator.

    - `bind`: the address of the host at which Compose publishes it.
    - `api_key_file`: the file of that key, read again when it changes.
    - `console_url`: where browsers reach the console, for the log; None: where it listens.
    - `grafana_url`: where browsers reach the boards; None: pages do not lead there.
    - `keys_file`: further keys of users, with names and roles.
    - `host_keys_file`: the key of each host, bound to its name; None: `service_key` is valid for
      all hosts.
    """

    api_key: Key
    api_key_file: Path | None = None
    service_key: Key
    keys_file: ReadableFile | None = None
    host_keys_file: ReadableFile | None = None
    bind: str | None = None
    console_url: Annotated[str, url_of("http", "https")] | None = None
    grafana_url: Annotated[str, url_of("http", "https")] | None = None
    redis_url: RedisUrl = DEFAULT_REDIS_URL
    results: Annotated[Path, AfterValidator(_writable)] = Field(
        default_factory=partial(results_directory, None), validate_default=True
    )

    keep_results_days: _Days = None
    keep_results_bytes: Annotated[
        int | None,
        Field(
            gt=0,
            title="a number of bytes above 0",
            description="give one such as 100000000000, or nothing for no limit",
        ),
    ] = None
    keep_rejected_days: _Days = None

    @property
    def limits(self) -> Limits:
        """How long results, and points that InfluxDB refused, are kept."""
        return Limits(self.keep_results_days, self.keep_results_bytes, self.keep_rejected_days)

    @property
    def console(self) -> str | None:
        """The address of the console for browsers; None: unknown."""
        if self.console_url is not None or self.listen.path is not None:
            return self.console_url
        url = self.listen.secured_url(self.tls_cert_file is not None)
        return url and f"{url}/ui/"

    @model_validator(mode="before")
    @classmethod
    def _listen_at_own_port(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {"listen": DEFAULT_LISTEN, **values}

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_exposure(self.bind)
        return self
