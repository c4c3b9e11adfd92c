"""What a service is told by its environment."""

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hostbench.errors import UsageError, listing, shown
from hostbench.hostmemory import user_bandwidth
from hostbench.hostnetwork import BANDWIDTH as NET_BANDWIDTH
from hostbench.hostscratch import check_ratings
from hostbench.lock import lock_path
from hostbench.models.service import HostName, IpAddress, Registration
from hostbench.program import SUBSYSTEMS
from hostbench.services import Subsystem
from hostbench.tls import trusting
from hostbench.web.exposure import Tls, check_exposure, server_tls
from hostbench.web.keys import required_key
from hostbench.web.listen import Listen, parse_listen

# So that the services of a host can stand side by side.
PORTS = {subsystem: 8001 + place for place, subsystem in enumerate(Subsystem)}
_HOST = TypeAdapter(HostName)
_ADDRESS = TypeAdapter(IpAddress)


@dataclass(frozen=True)
class Settings:
    """`url` is how the orchestrator reaches this service; both None: nobody is told of it.
    `net_address`: where others reach this host for data, None: by the address that it reaches them
    from."""

    subsystem: Subsystem
    host: str
    key: str
    listen: Listen
    lock: Path
    orchestrator_url: str | None
    url: str | None
    ca_file: Path | None
    tls: Tls | None = None
    net_address: str | None = None


def read_settings(subsystem: str) -> Settings:
    """The settings of this process. Raises UsageError or ResourceError for the first bad one."""
    if subsystem not in SUBSYSTEMS:
        raise UsageError(
            f"there is no service {shown(subsystem)}; give {listing(sorted(SUBSYSTEMS))}"
        )
    name = Subsystem(subsystem)
    listen = parse_listen(os.environ.get("HOSTBENCH_LISTEN") or f"127.0.0.1:{PORTS[name]}")
    tls = server_tls()
    if name is Subsystem.NET:
        # The one that other machines reach by itself, not by a network of the containers' own.
        check_exposure(listen, tls)
    orchestrator = os.environ.get("HOSTBENCH_ORCHESTRATOR_URL") or None
    host = _host_name()
    # So that a wrong one is told now, not by every call for the inventory.
    user_bandwidth()
    check_ratings()
    NET_BANDWIDTH.told()
    return Settings(
        subsystem=name,
        host=host,
        key=required_key("HOSTBENCH_SERVICE_KEY"),
        listen=listen,
        lock=lock_path(),
        orchestrator_url=_orchestrator(orchestrator),
        url=_own_url(name, host, listen, tls) if orchestrator else None,
        ca_file=_ca_file(),
        tls=tls,
        net_address=_net_address(),
    )


def _host_name() -> str:
    name = os.environ.get("HOSTBENCH_HOST") or socket.gethostname()
    try:
        return _HOST.validate_python(name)
    except ValidationError:
        raise UsageError(
            f"HOSTBENCH_HOST {shown(name)} is not a name of a host; "
            "give up to 64 letters, digits, dots, dashes or underscores"
        ) from None


def _orchestrator(url: str | None) -> str | None:
    if url is not None and not re.fullmatch(r"https?://[^\s/]+/?", url):
        raise UsageError(
            f"HOSTBENCH_ORCHESTRATOR_URL {shown(url)} is not an address; "
            "give one such as http://orchestrator:8000"
        )
    return url and url.rstrip("/")


def _own_url(subsystem: Subsystem, host: str, listen: Listen, tls: Tls | None) -> str:
    url = os.environ.get("HOSTBENCH_SERVICE_URL") or listen.secured_url(tls is not None)
    if url is None:
        raise UsageError(
            "HOSTBENCH_SERVICE_URL is not set; say how the orchestrator reaches this service, "
            f"such as http://{subsystem}:{PORTS[subsystem]}"
        )
    try:
        return Registration(host=host, subsystem=subsystem, url=url, instance="0" * 8).url
    except ValidationError:
        raise UsageError(
            f"HOSTBENCH_SERVICE_URL {shown(url)} is not an address; "
            f"give one such as http://{subsystem}:{PORTS[subsystem]} "
            f"or unix:/run/hostbench/{subsystem}.sock"
        ) from None


def _net_address() -> str | None:
    text = os.environ.get("HOSTBENCH_NET_ADDRESS")
    if not text:
        return None
    try:
        return _ADDRESS.validate_python(text)
    except ValidationError:
        raise UsageError(
            f"HOSTBENCH_NET_ADDRESS {shown(text)} is not the address of one host; "
            "give one of this host's, such as 192.0.2.7"
        ) from None


def _ca_file() -> Path | None:
    """Looked into now, so that a wrong one is told at the start."""
    given = os.environ.get("HOSTBENCH_CA_FILE")
    if not given:
        return None
    path = Path(given)
    trusting(path)
    return path
