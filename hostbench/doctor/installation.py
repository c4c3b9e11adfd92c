"""Whether hostbench itself is complete."""

import platform
import sys
import sysconfig

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
from hostbench.program import SUBSYSTEMS, load_program
from hostbench.services import Subsystem

PYTHON_LEAST = (3, 11)
BUILD = Advice("make programs", Reach.OWN)


def programs(view: View) -> Outcome:
    """Whether the benchmark programs are built, start, and are of this version."""
    del view  # the programs are found as a run finds them
    seen, failures, versions = [], [], set()
    for subsystem in SUBSYSTEMS:
        try:
            program = load_program(subsystem)
        except ResourceError as error:
            failures.append(error.message)
            continue
        versions.add(program.table.version)
        value = f"{program.table.program} {program.table.version}"
        seen.append(Evidence(source=str(program.path), value=value))
    if failures:
        return problem("; ".join(failures), *seen, advice=BUILD)
    if versions != {__version__}:
        text = f"built from version {', '.join(sorted(versions))}, while this is {__version__}"
        return notice(text, *seen, advice=BUILD)
    return ok(f"{len(seen)} of {len(SUBSYSTEMS)} built", *seen)


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
