"""A process for which some files are not there, as on a kernel or in a sandbox without them, or
have another content."""

from pathlib import Path

from tests.compiled import STRICT, compiled

SOURCE = Path(__file__).with_suffix(".c")


def hiding(*prefixes: str) -> dict[str, str]:
    """The environment of a process that finds no file whose path begins with one of these."""
    return {**_preloaded(), "HOSTBENCH_TEST_HIDDEN": ":".join(prefixes)}


def planting(directory: Path, files: dict[str, str]) -> dict[str, str]:
    """The environment of a process that reads these texts at these paths."""
    for path, text in files.items():
        planted = directory / path.lstrip("/")
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_text(text)
    return {**_preloaded(), "HOSTBENCH_TEST_PLANTED": str(directory)}


def _preloaded() -> dict[str, str]:
    shim = compiled("hidden_files.so", [SOURCE], [*STRICT, "-shared", "-fPIC", "-ldl"])
    return {"LD_PRELOAD": str(shim)}
