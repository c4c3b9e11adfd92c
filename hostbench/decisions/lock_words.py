"""The locks under which hosts were measured, in words."""

from collections.abc import Mapping, Sequence

from hostbench.base.units import plural, some_of
from hostbench.model.campaign import LockName

_WORDS: Mapping[LockName, str] = {"host": "the host's lock file", "lease": "a Lease object"}
# A run by hand is of no campaign, and its document names no lock.
_NONE = "unknown (the document names no lock)"


def locks_words(hosts: Mapping[str, Sequence[LockName]], most: int) -> str:
    """Return which lock was held on which hosts, the most frequent first. Hosts are named, at most
    so many, if not all had the same lock."""
    groups: dict[str, list[str]] = {}
    for host, locks in hosts.items():
        words = " and ".join(_WORDS[one] for one in locks) or _NONE
        groups.setdefault(words, []).append(host)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    if len(ordered) == 1:
        ((words, names),) = ordered
        return f"{words}, on {plural(len(names), 'host')}"
    return "; ".join(
        f"{words}, on {plural(len(names), 'host')}: {some_of(names, most)}"
        for words, names in ordered
    )
