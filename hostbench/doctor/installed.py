"""Whether optional tools and libraries of a subsystem are installed."""

import shutil
from collections.abc import Mapping

from hostbench.doctor.check import Advice, Outcome, Reach, notice, ok
from hostbench.doctor.view import View
from hostbench.model.doctor import Evidence

LIBRARY_DIRECTORIES = ("/usr/lib", "/usr/lib/*", "/usr/lib64", "/usr/local/lib", "/lib/*")


def peers_installed(
    packages: Mapping[str, str], elsewhere: Mapping[str, str] | None = None
) -> Outcome:
    """Whether the tools are installed that figures can be compared with; `packages` by tool, and in
    `elsewhere` the origin of tools that are in no package."""
    origins = elsewhere or {}
    # Found in the same way as by a run.
    paths = {tool: shutil.which(tool) for tool in (*packages, *origins)}
    missing = [tool for tool, path in paths.items() if path is None]
    seen = [
        Evidence(source=tool, value=path, reason=_not_found(path is None))
        for tool, path in paths.items()
    ]
    if not missing:
        return ok(f"{', '.join(paths)}: installed", *seen)
    lacking = [packages[tool] for tool in missing if tool in packages]
    install = [f"apt-get install {' '.join(lacking)}"] if lacking else []
    build = [f"{tool}: {origins[tool]}" for tool in missing if tool in origins]
    advice = Advice("; ".join([*install, *build]), Reach.INSTALLED)
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
