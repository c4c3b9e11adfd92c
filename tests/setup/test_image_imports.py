"""The code of each image imports with what its lock file installs, and nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Imports every module below the packages, with the distributions hidden that the image lacks.
IMPORT_ALL = """
import importlib, importlib.metadata, pkgutil, re, sys

locked, packages = set(sys.argv[1].split()), sys.argv[2].split()
canonical = lambda name: re.sub("[-_.]+", "-", name).lower()
lacking = {
    module
    for module, names in importlib.metadata.packages_distributions().items()
    if not {canonical(name) for name in names} & (locked | {"hostbench"})
}

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in lacking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
for package in packages:
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, f"{package}."):
        if ".tests" not in found.name:
            importlib.import_module(found.name)
print(len(lacking), len(sys.modules))
"""


def locked(name: str) -> str:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    names = re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    return " ".join(re.sub("[-_.]+", "-", name).lower() for name in names)


# One of each subsystem that has an image.
SERVICES = [f"services.{path.parent.name}" for path in sorted(ROOT.glob("services/*/Dockerfile"))]


@pytest.mark.parametrize(
    ("requirements", "packages"),
    [
        ("orchestrator", "orchestrator hostbench.report hostbench.web"),
        *(("service", f"hostbench.service hostbench.web {service}") for service in SERVICES),
    ],
)
def test_imports(requirements: str, packages: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, locked(requirements), packages],
        cwd=ROOT,
        env={**os.environ, "HOSTBENCH_SERVICE_KEY": "k" * 64},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    hidden = int(ended.stdout.split()[0])
    assert hidden > 20
