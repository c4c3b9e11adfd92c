"""Many cases in one test: all of them are tried, and those that fail are named together."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Check = Callable[..., None]


def each(
    names: str | Sequence[str], cases: Iterable[Any], name: Callable[[Any], object] = repr
) -> Callable[[Check], Check]:
    """Decorate a test so that it checks every case, as `pytest.mark.parametrize` with the same
    names and cases would in a test each.

    For cases by the hundred that take a millisecond: pytest's own work for a test takes several.
    The cases share the test's fixtures and its time limit. A failure says how many failed and shows
    each with its `name`; a case that is skipped is reported as a skipped subtest."""
    tried = tuple(cases)
    wanted = (names,) if isinstance(names, str) else tuple(names)
    assert tried, f"there is no {', '.join(wanted)} to check"

    def decorate(check: Check) -> Check:
        parameters = inspect.signature(check).parameters

        @functools.wraps(check)
        def check_all(*args: object, subtests: pytest.Subtests, **fixtures: object) -> None:
            if "subtests" in parameters:
                fixtures["subtests"] = subtests
            failed: list[Exception] = []
            for case in tried:
                values = (case,) if isinstance(names, str) else case
                try:
                    check(*args, **fixtures, **dict(zip(wanted, values, strict=True)))
                except pytest.skip.Exception:
                    with subtests.test(str(name(case))):
                        raise
                except Exception as error:  # noqa: BLE001 (whatever it is, the others are tried)
                    error.add_note(f"case {name(case)}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(tried)} cases", failed)

        # What pytest reads to see which fixtures the test takes.
        kept = [p for p in parameters.values() if p.name not in (*wanted, "subtests")]
        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        check_all.__signature__ = inspect.Signature([*kept, subtests])  # type: ignore[attr-defined]
        return check_all

    return decorate
