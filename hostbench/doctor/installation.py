"""Whether hostbench itself is complete."""

import platform
import sys
import sysconfig
from pathlib import Path

from hostbench import __version__
from hostbench.base.errors import ResourceError
from hostbench.base.place import IN_WHEEL, REBUILD
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
from hostbench.model.doctor import Evidence
from hostbench.model.registry import subsystems
from hostbench.model.subsystem import Subsystem
from hostbench.programs.program import find_program, load_program, remedy_for, stated_version

PYTHON_LEAST = (3, 11)
AGAIN = "hostbench into it" if IN_WHEEL else "make venv"
BUILD = Advice(REBUILD if IN_WHEEL else "make programs", Reach.OWN)


def programs(view: View) -> Outcome:
    """Whether the benchmark programs are built, start, and are of this version."""
    del view  # found in the same way as by a run
    seen, failures, versions = [], [], set()
    for subsystem in subsystems().values():
        try:
            path, stated = _startable(subsystem)
        except ResourceError as error:
            failures.append(error.message)
            continue
        if subsystem.directory is None:
            versions.add(stated.rpartition(" ")[2])
        seen.append(Evidence(source=str(path), value=stated))
    if failures:
        return problem("; ".join(failures), *seen, advice=BUILD)
    if versions - {__version__}:
        text = f"built from version {', '.join(sorted(versions))}, while this is {__version__}"
        return notice(text, *seen, advice=BUILD)
    return ok(f"{len(seen)} of {len(subsystems())} built", *seen)


def _startable(subsystem: Subsystem) -> tuple[Path, str]:
    """Return a program, and its name and version. Raise ResourceError when it is not usable."""
    if subsystem.has_devices:
        # Its table needs the drivers, which create and open files of their own.
        path = find_program(subsystem.name)
        return path, stated_version(path, remedy_for(subsystem))
    program = load_program(subsystem.name)
    return program.path, f"{program.table.program} {program.table.version}"


def python(view: View) -> Outcome:
    """Whether the interpreter is one that hostbench is meant for."""
    del view
    seen = Evidence(source=sys.executable, value=f"Python {platform.python_version()}")
    if sys.version_info < PYTHON_LEAST:
        needed = ".".join(map(str, PYTHON_LEAST))
        advice = Advice(f"install Python {needed} or newer, then {AGAIN}", Reach.INSTALLED)
        return problem(f"older than {needed}", seen, advice=advice)
    if sys.version_info.releaselevel != "final" or sysconfig.get_config_var("Py_DEBUG"):
        return notice("not a release build", seen)
    return ok(platform.python_version(), seen)


CHECKS = (
    Check("programs", Topic.INSTALLATION, "Benchmark programs", ALL, programs),
    Check("python", Topic.INSTALLATION, "Python", ALL, python),
)
