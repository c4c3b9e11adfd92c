"""Runs the C unit tests of the harness, as released and under AddressSanitizer and UBSan."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.builds import builds

ROOT = Path(__file__).parents[2]
NAMES = sorted(source.stem for source in (ROOT / "harness" / "tests").glob("test_*.c"))


@pytest.mark.parametrize("variant", builds("release", "asan"))
@pytest.mark.parametrize("name", NAMES)
def test_c_unit(name: str, variant: str, tmp_path: Path) -> None:
    program = ROOT / "build" / variant / "tests" / name
    result = subprocess.run(
        [program], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert result.returncode == 0, result.stderr
