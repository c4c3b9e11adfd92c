"""The secret of a campaign of pairs: a key, and a certificate for the connections between ends.

Its two ends have it as files. An engine keeps it where only they read it; it is in no command line
and no environment.
"""

import secrets
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import ResourceError

KEY, CERTIFICATE, PRIVATE_KEY = "key", "tls.crt", "tls.key"
KEY_BYTES = 32
# Longer than any campaign; the ends do not check it, since their clocks may differ.
DAYS = 3650
SUBJECT = "/CN=hostbench-pair"


@dataclass(frozen=True)
class SecretFiles:
    """The secret, in a directory of an end."""

    directory: Path

    @property
    def certificate(self) -> Path:
        """Return the file of the certificate."""
        return self.directory / CERTIFICATE

    @property
    def private_key(self) -> Path:
        """Return the file of the certificate's key."""
        return self.directory / PRIVATE_KEY

    def key(self) -> str:
        """Return the key. Raise ResourceError."""
        try:
            return (self.directory / KEY).read_text("ascii").strip()
        except (OSError, UnicodeError) as error:
            raise ResourceError(
                f"cannot read the campaign's key {self.directory / KEY}: {error}; measure under "
                "another --name"
            ) from None


def new_secret() -> Mapping[str, str]:
    """Return the contents of the files, by name. Raise ResourceError where openssl is missing."""
    with tempfile.TemporaryDirectory() as directory:
        files = SecretFiles(Path(directory))
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", str(DAYS), "-subj", SUBJECT,
            "-keyout", str(files.private_key), "-out", str(files.certificate),
        )  # fmt: skip
        return {
            KEY: secrets.token_hex(KEY_BYTES),
            CERTIFICATE: files.certificate.read_text(),
            PRIVATE_KEY: files.private_key.read_text(),
        }


def _openssl(*arguments: str) -> None:
    try:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        raise ResourceError(
            "openssl is missing; it makes the certificate of a campaign of pairs: "
            "apt-get install openssl"
        ) from None
    if done.returncode != 0:
        raise ResourceError(f"openssl could not make a certificate: {done.stderr.strip()}")
