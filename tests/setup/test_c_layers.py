"""scripts/c_layers.py finds what it is there to find, in a checkout of a few lines."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/c_layers.py"
LAYERED = {
    "harness/clock.h": "int clock_read(void);\n",
    "harness/clock.c": '#include "clock.h"\nint clock_read(void) { return 0; }\n',
    "harness/life.h": "int live(int (*work)(void));\n",
    "harness/life.c": '#include "life.h"\n#include "clock.h"\n'
    "int live(int (*work)(void)) { return clock_read() + work(); }\n",
    "services/toy/bench/work.h": "int work(void);\n",
    "services/toy/bench/work.c": '#include "work.h"\nint work(void) { return 1; }\n',
    "services/toy/bench/main.c": '#include "life.h"\n#include "work.h"\n'
    "int main(void) { return live(work); }\n",
}


def check(root: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """The script's answer to the layered files with some of them changed, by their stems."""
    for name, text in LAYERED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(changed.get(Path(name).name.replace(".", "_"), text))
    for source in root.glob("**/*.c"):
        built = (root / "build/release" / source.relative_to(root)).with_suffix(".o")
        built.parent.mkdir(parents=True, exist_ok=True)
        include = f"-I{root / 'harness'}"
        subprocess.run(["gcc", "-c", include, "-o", str(built), str(source)], check=True)
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)


def test_layers_are_fine(tmp_path: Path) -> None:
    assert (checked := check(tmp_path)).returncode == 0, checked.stderr


WRONG = {
    "a circle of modules: harness/clock -> harness/life (clock.c uses live)"
    " -> harness/clock (life.c uses clock_read)": {
        "clock_c": '#include "clock.h"\n#include "life.h"\n'
        "int clock_read(void) { return live(clock_read); }\n"
    },
    "a circle of modules: harness/clock -> harness/life (clock.h includes life.h)"
    " -> harness/clock (life.c uses clock_read)": {
        "clock_h": '#include "life.h"\nint clock_read(void);\n'
    },
    "a circle of modules: harness/clock -> harness/life (clock.h includes life.h)"
    " -> harness/clock (life.h includes clock.h)": {
        "clock_h": '#pragma once\n#include "life.h"\nint clock_read(void);\n',
        "life_h": '#pragma once\n#include "clock.h"\nint live(int (*work)(void));\n',
        "life_c": '#include "life.h"\nint live(int (*work)(void)) { return work(); }\n',
        "main_c": '#include "life.h"\n#include "work.h"\n'
        "int main(void) { return live(clock_read) + work(); }\n",
    },
    "harness/clock.c uses work of services/toy/bench/work.c: pass it in the program's table": {
        "clock_c": "int work(void);\nint clock_read(void) { return work(); }\n"
    },
    "services/toy/bench/work.c: no other file uses rest: make it static, or remove it": {
        "work_c": "int rest(void) { return 0; }\nint work(void) { return rest(); }\n"
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_one_line_says_what_is_wrong(tmp_path: Path, message: str) -> None:
    checked = check(tmp_path, **WRONG[message])
    assert (checked.returncode, checked.stderr) == (1, f"{message}\n")


def test_programs_that_are_not_built_are_an_error(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 0
    (tmp_path / "build/release/harness/life.o").unlink()
    checked = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True)
    assert checked.returncode == 1 and "make programs" in checked.stderr
