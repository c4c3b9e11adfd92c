"""What the dynamic loader says of a peer that was linked with the libraries of stand-ins/."""

import re

# The peers that link such libraries, with the subsystem whose folder has the lists.
TOOLS = {"fio": "disk", "stress-ng": "cpu"}


def misfits(tool: str, listed: str) -> str:
    """Return what `ldd -r` lists as missing, with the remedy; an empty text if all is there."""
    missing = re.findall(r"undefined symbol: (\w+)|(\S+) => not found", listed)
    if not missing:
        return ""
    names = ", ".join(sorted(function or library for function, library in missing))
    return (
        f"{tool} lacks {names}: add functions to the lists in services/{TOOLS[tool]}/stand-ins/; "
        "a library of a new name needs a list of that name"
    )
