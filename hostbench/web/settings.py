"""The settings of a server: where it listens, its keys and TLS. They ensure that keys never travel
unencrypted beyond this machine. Without FastAPI, so that a wrong setting is reported at once."""

import os
import ssl
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    model_validator,
)
from pydantic_settings import NoDecode

from hostbench.base.config import EnvironmentSettings
from hostbench.base.errors import ResourceError, UsageError, shown
from hostbench.base.listen import Listen, is_loopback, parse_listen
from hostbench.base.tls import trusting

KEY_CHARACTERS_LEAST = 16


def _readable(path: Path, info: ValidationInfo) -> Path:
    if not path.is_file() or not os.access(path, os.R_OK):
        name = ServerSettings.variable(info.field_name or "")
        raise ResourceError(f"{name} {path} is not a file that can be read; make env makes it")
    return path


def _usable(ca_file: Path) -> Path:
    trusting(ca_file)
    return ca_file


def _long_enough(key: SecretStr) -> SecretStr:
    if len(key) < KEY_CHARACTERS_LEAST:
        raise ValueError(
            f"has {len(key)} characters, {KEY_CHARACTERS_LEAST} are the least; "
            "make env makes a good one"
        )
    return key


Key = Annotated[
    SecretStr,
    AfterValidator(_long_enough),
    Field(description="name a file with the key (make env makes one)"),
]
ListenAddress = Annotated[Listen, NoDecode, BeforeValidator(parse_listen)]
CaFile = Annotated[Path, AfterValidator(_usable)]
ReadableFile = Annotated[Path, AfterValidator(_readable)]


class ServerSettings(EnvironmentSettings):
    """Where a server listens, and the files of its certificate and the certificate's key; both
    None: it uses HTTP without TLS. `ca_file`: the authority that signed other servers'
    certificates; None: the system's authorities."""

    listen: ListenAddress
    tls_cert_file: ReadableFile | None = None
    tls_key_file: ReadableFile | None = None
    ca_file: CaFile | None = None

    @model_validator(mode="after")
    def _check_pair(self) -> Self:
        certificate, key = self.tls_cert_file, self.tls_key_file
        if certificate is None and key is None:
            return self
        if certificate is None or key is None:
            missing = self.variable("tls_cert_file" if certificate is None else "tls_key_file")
            raise UsageError(f"{missing} is not set; TLS needs the certificate and its key")
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            raise ResourceError(
                f"{certificate} and {key} are not a certificate and its key: {error}; "
                "make env makes a pair"
            ) from None
        return self

    def check_exposure(self, published: str | None = None) -> None:
        """Raise UsageError if keys would travel unencrypted. `published`: HOSTBENCH_BIND, for a
        server in a container that others reach only at that address."""
        name = "HOSTBENCH_BIND" if published else "HOSTBENCH_LISTEN"
        exposed = published or self.listen.address
        loopback = is_loopback(published) if published else self.listen.loopback
        if self.tls_cert_file is None and not loopback:
            raise UsageError(
                f"{name} {shown(exposed)} is reachable from other machines, where keys would "
                "travel in clear; set HOSTBENCH_TLS_CERT_FILE and HOSTBENCH_TLS_KEY_FILE "
                "(make env makes both), or use 127.0.0.1"
            )
