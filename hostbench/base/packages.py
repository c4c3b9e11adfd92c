"""Python packages that only a part of hostbench needs and that may be missing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hostbench.base.errors import ResourceError
from hostbench.base.place import IN_WHEEL

_OURS = frozenset({"hostbench", "orchestrator", "services"})


@contextmanager
def needs_packages(requirements: str) -> Iterator[None]:
    """Surround imports that need the packages of requirements/<requirements>.txt. Raise
    ResourceError if one is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in _OURS:
            raise
        raise ResourceError(
            f"the Python package {package} is missing; install what is needed here: "
            f"{sys.executable} -m pip install {_given_to_pip(requirements)}"
        ) from None


def _given_to_pip(requirements: str) -> str:
    if IN_WHEEL:
        return f"'hostbench[{requirements}]'"
    return f"--require-hashes -r requirements/{requirements}.txt"
