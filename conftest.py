"""Which cases of a test `make test` leaves to `make test-all`."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a `sampled(every)` test `exhaustive`, all but each `every`-th.

    Of stacked parameters that is a diagonal: with `every` coprime to the number of values of each
    of them, all values come up."""
    met: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            continue
        function = item.nodeid.partition("[")[0]
        if met[function] % mark.args[0] != 0:
            item.add_marker(pytest.mark.exhaustive)
        met[function] += 1
