"""Whether optional tools and libraries of a subsystem are installed."""

import shutil
from collections.abc import Mapping

from hostbench.doctor.check import Advice, Outcome, Reach, notice, ok
from hostbench.doctor.view import View
from hostbench.model.doctor import Evidence

LIBRARY_DIRECTORIES = ("/usr/lib", "/usr/lib/*", "/usr/lib64", "/usr/local/lib", "/lib/*")


def peers_installed(packages: Mapping[str, str]) -> Outcome:
    """Whether the tools are installed that figures can be compared with; `packages` by tool."""
    # Found in the same way as by a run.
    missing = {tool: package for tool, package in packages.items() if shutil.which(tool) is None}
    seen = [
        Evidence(source=tool, value=shutil.which(tool), reason=_not_found(tool in missing))
        for tool in packages
    ]
    if not missing:
        return ok("all are installed", *seen)
    advice = Advice(f"apt-get install {' '.join(missing.values())}", Reach.INSTALLED)
    return notice(f"without {', '.join(missing)}", *seen, advice=advice)


def _not_found(missing: bool) -> str | None:
    return "not on PATH" if missing else None


def library_installed(view: View, library: str, package: str) -> Outcome:
    """Whether a shared library is where the linker looks for it."""
    found = [
        path for directory in LIBRARY_DIRECTORIES for path in view.find(f"{directory}/{library}")
    ]
    if found:
        return ok("installed", Evidence(source=found[0], value="there"))
    missing = Evidence(source=f"{', '.join(LIBRARY_DIRECTORIES)}/{library}", reason="no such file")
    advice = Advice(f"apt-get install {package}", Reach.INSTALLED)
    return notice(f"no {library}", missing, advice=advice)
