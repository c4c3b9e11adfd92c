"""The C compiler of the tests."""

import shutil

import pytest


def compiler() -> str:
    """Skip where there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler")
    return found
