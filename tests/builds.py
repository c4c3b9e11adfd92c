"""The builds of the programs that `make test` and `make test-all` look at."""

import pytest
from _pytest.mark.structures import ParameterSet


def builds(*names: str) -> list[ParameterSet]:
    """The values of `pytest.mark.parametrize("variant", …)`. `make test` has the release build
    alone."""
    return [
        pytest.param(name, marks=() if name == "release" else pytest.mark.exhaustive)
        for name in names
    ]
