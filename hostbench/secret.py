"""Secrets: read from a file that the environment names, or from the environment itself."""

import os
from pathlib import Path

from hostbench.errors import ResourceError


def secret(name: str) -> str | None:
    """The secret that NAME_FILE names a file of, or that NAME holds; None: neither is set.

    Raises ResourceError for a file that cannot be read.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name) or None
    return read_secret(Path(path), f"{name}_FILE")


def read_secret(path: Path, named: str) -> str | None:
    """The secret in a file, None when it is empty. `named` is how the file was given, for the
    message of the ResourceError when it cannot be read."""
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ResourceError(
            f"cannot read {named} {path}: {reason}; make env makes the secrets"
        ) from None
