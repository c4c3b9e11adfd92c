"""Slurm's commands, and what their errors mean."""

import re
import subprocess
from collections.abc import Collection

from hostbench.base.errors import HostbenchError, ResourceError, UnreachableError, UsageError

COMMAND_S_MOST = 60.0
# The messages of Slurm's commands, by what to do about them. The last word may be an option.
_REMEDIES = (
    ("invalid partition", UsageError, "name one that sinfo lists with --queue"),
    ("reservation", UsageError, "scontrol show reservation lists them"),
    ("invalid account", UsageError, "sacctmgr show associations lists what you may use"),
    ("invalid qos", UsageError, "sacctmgr show qos lists them"),
    ("node name", UsageError, "sinfo --Node lists them"),
    ("unable to contact", UnreachableError, "is slurmctld up?"),
    ("configuration source", UnreachableError, "set SLURM_CONF, or call this on a login node"),
    ("access/permission", UsageError, "only the owner of a campaign's jobs, or root, may do that"),
)


def run(program: str, *arguments: str, stdin: str = "", inherited: Collection[int] = ()) -> str:
    """Run one of Slurm's commands; return its output. Raise HostbenchError in one line."""
    try:
        ended = subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S_MOST,
            pass_fds=inherited,
        )
    except FileNotFoundError:
        raise ResourceError(
            f"{program} is missing; call hostbench where Slurm's commands are, such as a login "
            "node, or install them (Debian: slurm-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"{program} did not answer within {COMMAND_S_MOST:g} s; is slurmctld up?"
        ) from None
    if ended.returncode == 0:
        return ended.stdout
    text = ended.stderr or ended.stdout
    message = f"{program}: {_first_line(program, text)}"
    for words, kind, remedy in _REMEDIES:
        if words in text.lower():
            option = f"--{words.split()[-1]}="
            given = "".join(f" ({one})" for one in arguments if one.startswith(option))
            raise kind(f"{message}{given}; {remedy}")
    raise HostbenchError(message)


def _first_line(program: str, text: str) -> str:
    """Return the line of a command's errors that says most: the fatal one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "it failed without a word"
    line = next((line for line in lines if "fatal:" in line), lines[0])
    return re.sub(rf"^{program}: (error|fatal): ", "", line).rstrip(".")
