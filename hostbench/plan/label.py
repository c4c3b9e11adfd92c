"""The name of a case, and the words for its parameters in labels, tables, charts and boards."""

from collections.abc import Mapping

from hostbench.base.units import exact_bytes
from hostbench.model.events import ParamValue
from hostbench.model.suite import SuiteCase
from hostbench.model.table import ParamMeaning, Workload

BYTES = "_bytes"


def label_of(entry: SuiteCase, given: Mapping[str, ParamValue], workload: Workload) -> str:
    """Return what distinguishes this case from its neighbours, such as `fp64 avx2 2 threads`."""
    words = [entry.label] if entry.label else []
    for param in workload.params:
        name = param.name
        if name not in given or "how" in param.roles or (entry.label and name not in entry.grid):
            continue
        words.append(param_word(param, given[name]))
    return " ".join(words)


def param_word(param: ParamMeaning, value: object) -> str:
    """Return a parameter with its value in words: `2 threads`, `avx2`, `size 4 KiB`, `device 1`,
    `lock each`, `nb=192`, `cpus=0,1`, `rate not set`."""
    if value is None:
        return f"{param.name} not set"
    if param.noun:
        # The word of a choice may also be a number.
        return f"1 {param.noun}" if str(value) == "1" else f"{value} {param.noun}s"
    if param.named:
        return f"{param.name} {value}"
    if param.name.endswith(BYTES):
        size = exact_bytes(value) if isinstance(value, int) else value
        return f"{param.name.removesuffix(BYTES)} {size}"
    if isinstance(value, tuple):
        return f"{param.name}={','.join(str(one) for one in value)}"
    return value if isinstance(value, str) and value[:1].isalpha() else f"{param.name}={value}"


def param_title(param: ParamMeaning) -> str:
    """Return the name of a parameter for an axis or a heading: `number of threads`, `block size`,
    `queue depth`."""
    if param.title:
        return param.title
    if param.noun:
        return f"number of {param.noun}s"
    words = param.name.removesuffix(BYTES).replace("_", " ")
    sized = param.name.endswith(BYTES) and words != "size"
    return f"{words} size" if sized else words
