"""Parameter values, checked against a program's table before the program starts."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.events import ParamValue
from hostbench.model.suite import ALL
from hostbench.model.table import Param, Workload

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_TEXT = re.compile(r"[A-Za-z0-9:._-]{1,128}")
_CPU_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def check_params(
    workload: Workload, given: Mapping[str, ParamValue], allowed_cpus: Iterable[int]
) -> dict[str, ParamValue]:
    """Return the given parameters in their own types.

    Raise UsageError for the first one that is unknown, not for requests, or out of range.
    """
    for param in excluding(workload, given):
        raise UsageError(
            f"{param.excludes} and {param.name} exclude one another; leave out one of them"
        )
    return {
        name: check_value(known_param(workload, name), value, allowed_cpus)
        for name, value in given.items()
    }


def excluding(workload: Workload, given: Collection[str]) -> Iterator[Param]:
    """Yield the given parameters that exclude another given one."""
    for param in workload.params:
        if param.name in given and param.excludes in given:
            yield param


def known_param(workload: Workload, name: str) -> Param:
    """Return the request parameter called `name`. Raise UsageError."""
    param = workload.param(name)
    requestable = [param.name for param in workload.params if param.scope == "request"]
    if param is None:
        raise UsageError(
            f"there is no parameter {shown(name)}; "
            f"{did_you_mean(name, requestable)}give {listing(requestable)}"
        )
    if param.scope != "request":
        raise UsageError(
            f"{name} is set by the operator of the host and never by a suite; "
            f"remove it, or use {listing(requestable)}"
        )
    return param


def check_value(param: Param, value: ParamValue, allowed_cpus: Iterable[int]) -> ParamValue:
    """Return `value` in the parameter's type. Raise UsageError with the remedy."""
    if isinstance(value, str) and value in param.words:
        return value
    if param.type == "choice":
        raise _bad_choice(param, value)
    if param.type == "cpu_list":
        return _cpu_list(param, value, frozenset(allowed_cpus))
    if param.type == "text":
        return _text(param, value)
    number = _number(param, value)
    # A whole number may be too large for isfinite().
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        raise UsageError(
            f"{param.name} {shown(value)} is not {_kind(param)}; give {allowed(param)}"
        )
    low = param.min if param.min is not None else -math.inf
    high = param.max if param.max is not None else math.inf
    if not low <= number <= high:
        raise UsageError(f"{param.name} {shown(value)} is out of range; give {allowed(param)}")
    return number


def _bad_choice(param: Param, value: ParamValue) -> UsageError:
    if value == ALL:
        return UsageError(
            f"{param.name} all stands for several cases; put it in grid, or give "
            f"{listing(param.words)}"
        )
    return UsageError(
        f"{param.name} {shown(value)} is not known; "
        f"{did_you_mean(str(value), param.words)}give {listing(param.words)}"
    )


def _text(param: Param, value: ParamValue) -> str:
    """Return a name. A whole number is also one: in a suite, that of a device has no quotes."""
    if value == ALL:
        raise UsageError(
            f"{param.name} all stands for several cases; put it in grid, or give {allowed(param)}"
        )
    name = str(value) if isinstance(value, int) else value
    if isinstance(name, str) and _TEXT.fullmatch(name):
        return name
    raise UsageError(f"{param.name} {shown(value)} is not a name; give {allowed(param)}")


def _kind(param: Param) -> str:
    return "a whole number" if param.type == "count" else "a finite decimal number"


def allowed(param: Param) -> str:
    """Return what the parameter accepts, such as `1 to 4096 or all`."""
    unit = f" {param.unit}" if param.unit and param.unit != "1" else ""
    words = listing(param.words)
    if param.type == "choice":
        return words
    if param.type == "cpu_list":
        return "a CPU list such as 0,2-5"
    if param.type == "text":
        return "a name of 1 to 128 of A-Z a-z 0-9 : . _ -"
    bounds = f"{_plain(param.min)} to {_plain(param.max)}{unit}"
    return f"{bounds} or {words}" if param.words else bounds


def _plain(bound: int | float | None) -> str:
    if bound is None:
        return "any"
    exact = float(bound).is_integer() and abs(bound) < 1e15
    return str(int(bound)) if exact else f"{bound:g}"


def _number(param: Param, value: ParamValue) -> int | float | None:
    """Return `value` as a number of the parameter's type, or None if it is not one."""
    if param.type == "count":
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            return int(value) if len(value) <= 40 else math.inf
        return value if isinstance(value, int) else None
    if isinstance(value, str):
        return float(value) if _DECIMAL.fullmatch(value) else None
    return value


def _cpu_list(param: Param, value: ParamValue, allowed_cpus: frozenset[int]) -> str:
    """Return the list in normal form; this process must be allowed to use every CPU in it."""
    usable = cpu_ranges(allowed_cpus)
    spans = _spans(str(value))
    if spans and param.max is not None:
        return _any_hosts_cpu_list(param, str(value), spans)
    if not spans:
        raise UsageError(
            f"{param.name} {shown(value)} is not a CPU list; "
            f"give CPUs out of {usable}, such as 0,2-5"
        )
    for first, last in spans:
        # Walk a range only as far as it is allowed: 0-999999999 must not fill the memory.
        outside = next((cpu for cpu in range(first, last + 1) if cpu not in allowed_cpus), None)
        if outside is not None:
            raise UsageError(
                f"{param.name} {shown(value)} has CPU {outside}, which this process may not use; "
                f"give CPUs out of {usable}"
            )
    return _once_each(param, str(value), spans)


def _any_hosts_cpu_list(param: Param, value: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a list that may be of another host's CPUs: its far end knows which it may use."""
    assert param.max is not None
    beyond = next((last for _, last in spans if last > param.max), None)
    if beyond is not None:
        raise UsageError(
            f"{param.name} {shown(value)} has CPU {beyond}; give CPUs of 0 to {_plain(param.max)}"
        )
    return _once_each(param, value, spans)


def _once_each(param: Param, value: str, spans: Sequence[tuple[int, int]]) -> str:
    cpus = [cpu for first, last in spans for cpu in range(first, last + 1)]
    if len(set(cpus)) < len(cpus):
        raise UsageError(f"{param.name} {shown(value)} names a CPU twice; name each CPU once")
    return value


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the first and the last CPU of each part of a list such as 0,2-5; empty for an invalid
    list."""
    spans = []
    for part in text.split(","):
        match = _CPU_RANGE.fullmatch(part)
        if not match:
            return []
        spans.append((int(match[1]), int(match[2] or match[1])))
    return spans if all(first <= last for first, last in spans) else []


def cpu_count(cpu_list: str) -> int:
    """Return the number of CPUs in a list that was already checked."""
    return sum(last - first + 1 for first, last in _spans(cpu_list))


def cpu_ranges(cpus: Iterable[int]) -> str:
    """Return `0-3,8` for {0, 1, 2, 3, 8}."""
    parts: list[str] = []
    ordered = sorted(cpus)
    start = 0
    for i, cpu in enumerate(ordered):
        if i + 1 == len(ordered) or ordered[i + 1] != cpu + 1:
            first = ordered[start]
            parts.append(str(first) if first == cpu else f"{first}-{cpu}")
            start = i + 1
    return ",".join(parts)
