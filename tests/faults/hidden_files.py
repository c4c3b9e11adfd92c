"""A process for which some files are not there, as on a kernel or in a sandbox without them."""

from pathlib import Path

from tests.compiled import STRICT, compiled

SOURCE = Path(__file__).with_suffix(".c")


def hiding(*prefixes: str) -> dict[str, str]:
    """The environment of a process that finds no file whose path begins with one of these."""
    shim = compiled("hidden_files.so", [SOURCE], [*STRICT, "-shared", "-fPIC", "-ldl"])
    return {"LD_PRELOAD": str(shim), "HOSTBENCH_TEST_HIDDEN": ":".join(prefixes)}
