"""The meaning of parameters in result documents and journals that do not state it.

The roles of parameters were once part of the code and not of what was stored. This module keeps the
roles of that time, so that points and labels of an old document do not change. The list is closed:
today a program's table states what its parameters mean.
"""

from functools import cache

from hostbench.model.table import ParamMeaning, Role

_RESOLVED = ("best", "all", "auto", "local", "system")
_TAGS = frozenset(
    {
        *("dtype", "isa", "threads", "pages", "pattern", "load", "operation", "index"),
        *("cache_mode", "engine", "target", "direction", "ip_version", "send_path"),
        *("receive_path", "udp_path", "congestion", "wait", "backend", "instruction"),
        *("host_memory", "mode", "path"),
    }
)
_NUMBERS = frozenset(
    {
        *("size_bytes", "block_bytes", "intensity", "queue_depth"),
        *("streams", "load_streams", "rate"),
    }
)
_WORDS_ON_AXES = frozenset({"store"})
_HOW = frozenset({"duration_s", "warmup_s", "slice_s", "sample_interval_s"})
_NOUNS = {"threads": "thread", "streams": "stream", "load_streams": "load stream"}
_NAMED = frozenset({"device", "clock", "lock", "sync"})
_TITLES = {"dtype": "data type", "isa": "instruction set", "pages": "page mode"}


@cache
def old_meaning(name: str) -> ParamMeaning:
    """Return what the parameter called `name` meant. An unknown parameter is part of a label and
    nothing else."""
    numeric = name in _NUMBERS or name in _NOUNS
    return ParamMeaning(
        name=name,
        type="count" if numeric else "choice",
        unit="byte" if name.endswith("_bytes") else None,
        roles=_roles(name),
        title=_TITLES.get(name),
        noun=_NOUNS.get(name),
        named=name in _NAMED,
        resolved=_RESOLVED,
    )


def _roles(name: str) -> tuple[Role, ...]:
    if name in _HOW:
        return ("how",)
    if name in _TAGS:
        return ("tag",)
    return ("axis",) if name in _NUMBERS or name in _WORDS_ON_AXES else ()
