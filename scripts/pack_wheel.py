"""Packs the tree that scripts/wheel.sh laid out: pack_wheel.py TREE PLATFORM DIRECTORY."""

import os
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithPrograms(Distribution):  # type: ignore[misc]
    """For one platform, since it has programs."""

    def has_ext_modules(self) -> bool:
        """Say so in setuptools' words."""
        return True


def main() -> None:
    """Write the wheel into the directory."""
    tree, platform, directory = sys.argv[1:]

    class EveryPython(bdist_wheel):  # type: ignore[misc]
        """For every Python, since the programs are no extension modules."""

        def get_tag(self) -> tuple[str, str, str]:
            return "py3", "none", platform

    target = Path(directory).resolve()
    os.chdir(tree)
    setup(
        data_files=[
            (str(file.parent), [str(file)]) for file in sorted(Path("share").rglob("hostbench*"))
        ],
        distclass=WithPrograms,
        cmdclass={"bdist_wheel": EveryPython},
        script_args=["--quiet", "bdist_wheel", "--dist-dir", str(target)],
    )


if __name__ == "__main__":
    main()
