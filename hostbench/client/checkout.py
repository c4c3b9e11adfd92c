"""A checkout in which `make env` was run: where its stack listens, and its key."""

import grp
import os
import pwd
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import UsageError
from hostbench.base.place import CHECKOUT
from hostbench.client.address import Address

ENVIRONMENT = ".env"
# The names in compose.yaml.
BIND, PORT, TLS, SECRETS = "HOSTBENCH_BIND", "HOSTBENCH_PORT", "HOSTBENCH_TLS", "HOSTBENCH_SECRETS"
LOOPBACK = "127.0.0.1"
DEFAULT_PORT = "8000"
EVERYWHERE = ("0.0.0.0", "::", "*")  # noqa: S104


class DistrustError(UsageError):
    """Another user could have written the checkout's .env, which decides where the key is sent."""


@dataclass(frozen=True)
class Checkout:
    """`settings` are those of .env, unless the environment overrides them, as in Compose."""

    directory: Path
    settings: Mapping[str, str]

    @classmethod
    def found(
        cls, directories: Sequence[Path] | None, environment: Mapping[str, str] = os.environ
    ) -> "Checkout | None":
        """Return the first of `directories` that is such a checkout; None for `directories`: the
        present directory, and that of hostbench.

        Raise DistrustError for a checkout that other users may have written.
        """
        if directories is None:
            directories = (Path(), CHECKOUT)
        for directory in directories:
            settings = _settings(directory / ENVIRONMENT)
            # Many projects have a .env of their own.
            if any(name.startswith("HOSTBENCH_") for name in settings):
                given = {name: environment.get(name) for name in (BIND, PORT, TLS, SECRETS)}
                found = cls(directory, settings | {n: v for n, v in given.items() if v})
                found._check_owners()
                return found
        return None

    def _check_owners(self) -> None:
        # A user who can write there can also write the program that runs.
        if self.directory.resolve() == CHECKOUT.resolve():
            return
        for path in (self.directory, self.directory / ENVIRONMENT, self._secrets):
            if path.exists():
                _check_owner(path)

    @property
    def address(self) -> Address:
        """Return where the orchestrator is published. Raise UsageError if that is no address."""
        bind = (self.settings.get(BIND) or LOOPBACK).strip("[]")
        host = LOOPBACK if bind in EVERYWHERE else bind
        scheme = "https" if self.settings.get(TLS) else "http"
        port = self.settings.get(PORT) or DEFAULT_PORT
        bracketed = f"[{host}]" if ":" in host else host
        return Address.parsed(f"{scheme}://{bracketed}:{port}", self.named_by)

    @property
    def named_by(self) -> str:
        """The source of the address, for messages."""
        return f"{BIND} and {PORT} in {self.directory / ENVIRONMENT}"

    @property
    def key_file(self) -> Path:
        """The file of the users' key."""
        return self._secrets / "api_key"

    @property
    def ca_file(self) -> Path:
        """The authority that signed the orchestrator's certificate."""
        return self._secrets / "ca.pem"

    @property
    def _secrets(self) -> Path:
        return self.directory / (self.settings.get(SECRETS) or "secrets")


def _check_owner(path: Path) -> None:
    """Raise DistrustError if others than the caller and root can write the file."""
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise _distrust(path, f"belongs to user {_user(found.st_uid)}")
    if found.st_mode & stat.S_IWOTH:
        raise _distrust(path, "may be written by everybody")
    if found.st_mode & stat.S_IWGRP and not _of_one_user(found.st_gid, found.st_uid):
        raise _distrust(path, "is writable by its group")


def _distrust(path: Path, why: str) -> DistrustError:
    return DistrustError(
        f"{path.absolute()} {why}, and would decide where the key is sent; "
        "give the address and the key with --url and --key-file, work in another directory, or "
        "make it yours alone"
    )


def _of_one_user(group: int, user: int) -> bool:
    """Whether a group is the private group of its user, which most distributions give to each."""
    if group == 0 == user:
        return True
    try:
        entry, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    private = owner.pw_gid == group and entry.gr_name == owner.pw_name
    return private and set(entry.gr_mem) <= {owner.pw_name}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _settings(path: Path) -> dict[str, str]:
    """Return the NAME=VALUE lines of a .env; empty when it cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
