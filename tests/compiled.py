"""What the tests compile, kept in build/tests from one test process and one run to the next."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.machine_code import ROOT

KEPT = ROOT / "build" / "tests"
STRICT = ("-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror")


def compiled(
    name: str, sources: Sequence[Path], options: Sequence[str], *, compiler: str | None = None
) -> Path:
    """Return the file `name` made of these C sources; it must stay as it is.

    `options` stand before the sources but for libraries (-lm), which stand behind them. The file is
    made once of the same compiler, options and preprocessed text, so a change of a header counts.
    """
    program = compiler or os.environ.get("CC", "gcc")
    files = [str(source) for source in sources]
    before = [option for option in options if not option.startswith("-l")]
    libraries = [option for option in options if option.startswith("-l")]
    text = subprocess.run([program, *before, "-E", *files], check=True, capture_output=True).stdout
    key = hashlib.sha256(repr((program, _version(program), options, files)).encode() + text)
    made = KEPT / key.hexdigest()[:20] / name
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        # Another process may make the same file meanwhile: each puts a whole one in its place.
        with TemporaryDirectory(dir=made.parent) as directory:
            output = Path(directory) / name
            subprocess.run([program, *before, "-o", output, *files, *libraries], check=True)
            output.replace(made)
    return made


@cache
def _version(compiler: str) -> str:
    return subprocess.run(
        [compiler, "--version"], check=True, capture_output=True, text=True
    ).stdout
