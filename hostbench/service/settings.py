"""The settings of a service: docs/service.md lists the variables."""

import socket
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from hostbench.base.config import Option
from hostbench.base.errors import UsageError, listing, shown
from hostbench.host.lock import lock_path
from hostbench.model.registry import built_in_names, find_subsystem, subsystem_names
from hostbench.model.service import HostName, IpAddress, ServiceUrl
from hostbench.web.settings import Key, ServerSettings

_OrchestratorUrl = Annotated[
    str,
    StringConstraints(pattern=r"^https?://[^\s/]+/?$"),
    AfterValidator(lambda url: url.rstrip("/")),
]


class Settings(ServerSettings):
    """The settings of a service.

    - `service_url`: how the orchestrator reaches this service; None: as it listens.
    - `service_key_file`: the file of the key, read again when it changes.
    - `net_address`: where others reach this host for data; None: at the address from which it
      reaches them.
    """

    subsystem: str
    service_key: Key
    service_key_file: Path | None = None
    host: HostName = Field(
        default_factory=socket.gethostname,
        validate_default=True,
        title="a name of a host",
        description="give up to 64 letters, digits, dots, dashes or underscores",
    )
    lock: Path = Field(default_factory=lock_path)
    orchestrator_url: _OrchestratorUrl | None = Field(
        default=None, title="an address", description="give one such as http://orchestrator:8000"
    )
    service_url: ServiceUrl | None = None
    net_address: IpAddress | None = Field(
        default=None,
        title="the address of one host",
        description="give one of this host's, such as 192.0.2.7",
    )

    @property
    def url(self) -> str | None:
        """How the orchestrator reaches this service; None: unknown."""
        return self.service_url or self.listen.secured_url(self.tls_cert_file is not None)

    @field_validator("service_url", mode="wrap")
    @classmethod
    def _is_address(
        cls, url: str | None, check: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> str | None:
        try:
            return check(url)  # type: ignore[no-any-return]
        except ValidationError:
            known = find_subsystem(info.data["subsystem"])
            raise ValueError(
                f"is not an address; give one such as http://{known.name}:{known.port} or "
                f"unix:/run/hostbench/{known.name}.sock"
            ) from None

    @model_validator(mode="before")
    @classmethod
    def _listen_at_own_port(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{find_subsystem(values['subsystem']).port}", **values}

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = find_subsystem(self.subsystem)
        if known.has_far_ends:
            # Check the server that other machines reach directly, not through the containers' own
            # network.
            self.check_exposure()
        if self.orchestrator_url and self.url is None:
            raise UsageError(
                "HOSTBENCH_SERVICE_URL is not set; give the address by which the orchestrator "
                f"reaches this service, such as http://{known.name}:{known.port}"
            )
        # Checked at the start, so that a wrong rating is not found only at the first call for the
        # inventory. All ratings of our subsystems: the inventory has the facts that they rate,
        # whichever service makes it.
        own = dict.fromkeys((*built_in_names(), self.subsystem))
        for rating in [rating for name in own for rating in find_subsystem(name).ratings()]:
            rating.value()
        return self


def read_settings(subsystem: str) -> Settings:
    """Return the settings of this process. Raise UsageError or ResourceError for the first bad
    one."""
    if subsystem not in subsystem_names():
        raise UsageError(
            f"there is no service {shown(subsystem)}; give {listing(sorted(subsystem_names()))}"
        )
    return Settings.from_environment(subsystem=Option("the subsystem", subsystem))
