"""Whether hostbench itself is complete."""

import platform
import sys
import sysconfig
from pathlib import Path

from hostbench import __version__
from hostbench.doctor.check import (
    ALL,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    problem,
)
from hostbench.doctor.view import View
from hostbench.errors import ResourceError
from hostbench.models.doctor import Evidence
from hostbench.program import SUBSYSTEMS, find_program, load_program, stated_version
from hostbench.services import Subsystem

PYTHON_LEAST = (3, 11)
BUILD = Advice("make programs", Reach.OWN)


def programs(view: View) -> Outcome:
    """Whether the benchmark programs are built, start, and are of this version."""
    del view  # the programs are found as a run finds them
    seen, failures, versions = [], [], set()
    for subsystem in SUBSYSTEMS:
        try:
            path, told = _startable(subsystem)
        except ResourceError as error:
            failures.append(error.message)
            continue
        versions.add(told.rpartition(" ")[2])
        seen.append(Evidence(source=str(path), value=told))
    if failures:
        return problem("; ".join(failures), *seen, advice=BUILD)
    if versions != {__version__}:
        text = f"built from version {', '.join(sorted(versions))}, while this is {__version__}"
        return notice(text, *seen, advice=BUILD)
    return ok(f"{len(seen)} of {len(SUBSYSTEMS)} built", *seen)


def _startable(subsystem: str) -> tuple[Path, str]:
    """A program, and what it calls itself. Raises ResourceError when it is not usable."""
    if subsystem == Subsystem.GPU:
        # For its table it starts the drivers, which make and open files of theirs.
        path = find_program(subsystem)
        return path, stated_version(path)
    program = load_program(subsystem)
    return program.path, f"{program.table.program} {program.table.version}"


def python(view: View) -> Outcome:
    """Whether the interpreter is one that hostbench is meant for."""
    del view
    seen = Evidence(source=sys.executable, value=f"Python {platform.python_version()}")
    if sys.version_info < PYTHON_LEAST:
        needed = ".".join(map(str, PYTHON_LEAST))
        advice = Advice(f"install Python {needed} or newer, then make venv", Reach.INSTALLED)
        return problem(f"older than {needed}", seen, advice=advice)
    if sys.version_info.releaselevel != "final" or sysconfig.get_config_var("Py_DEBUG"):
        return notice("not a release build", seen)
    return ok(platform.python_version(), seen)


_HERE = tuple(Subsystem(name) for name in SUBSYSTEMS)

CHECKS = (
    Check("programs", Topic.INSTALLATION, "Benchmark programs", _HERE, programs),
    Check("python", Topic.INSTALLATION, "Python", ALL, python),
)
