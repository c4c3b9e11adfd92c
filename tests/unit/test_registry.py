"""Which subsystems there are: folders of services/, and the entry points of other packages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

import services
from hostbench.base.errors import UsageError
from hostbench.base.place import CHECKOUT
from hostbench.model.limit import Limit
from hostbench.model.registry import (
    AnsweredSubsystem,
    KnownSubsystem,
    _registry,
    find_subsystem,
    load_subsystems,
    subsystem_names,
    subsystems,
)
from hostbench.model.subsystem import Subsystem
from hostbench.run.execute import HostLimits
from tests.unit.records import RATE, end, host, start

OURS = subsystem_names()
# One with limits, in a folder of services/ or a package of its own.
TAPE = """
from hostbench.model.limit import Limit
from hostbench.model.subsystem import Subsystem

class Tape(Subsystem):
    def limits(self, host, start, end):
        return {start.workload: Limit(value=end.metrics["clock_hertz"], unit=host.hostname)}

SUBSYSTEM = Tape(name="NAME", title="Tape", port=8100)
"""
HEAVY = (
    "hostbench.doctor.check",
    "hostbench.report.content",
    "hostbench.programs.peer",
    "hostbench.model.result",
    "fastapi",
)


@pytest.fixture(autouse=True)
def looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry remembers what it found."""
    _registry.cache_clear()
    yield
    monkeypatch.undo()
    _registry.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Beside services/, and looked through as that is."""
    monkeypatch.setattr(services, "__path__", [*services.__path__, str(tmp_path)])
    return tmp_path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, name: str, module: str, value: str | None = None) -> None:
    """A package with one module of its name, as pip leaves it."""
    (site / f"{name}.py").write_text(module)
    about = site / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    entry = value or f"{name}:SUBSYSTEM"
    (about / "entry_points.txt").write_text(f"[hostbench.subsystems]\n{name} = {entry}\n")


def test_ours_are_the_folders_of_services() -> None:
    (folder,) = services.__path__
    assert set(OURS) == {path.parent.name for path in Path(folder).glob("*/subsystem.py")}
    assert OURS[:5] == ("cpu", "mem", "disk", "net", "gpu")
    assert [find_subsystem(name).port for name in OURS[:5]] == [8001, 8002, 8003, 8004, 8005]


def test_to_list_them_imports_nothing_heavy() -> None:
    code = (
        "import json, sys; from hostbench.model.registry import subsystem_names as names; "
        "print(json.dumps([names(), sorted(sys.modules)]))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    names, modules = json.loads(ended.stdout)
    assert tuple(names) == OURS
    assert [one for one in modules if one.startswith(HEAVY)] == []
    assert [one for one in modules if one.startswith("services.") and one.count(".") > 1] == [
        f"services.{name}.subsystem" for name in sorted(OURS)
    ]


def test_a_new_folder_is_all_it_takes(folder: Path) -> None:
    (folder / "planted_tape").mkdir()
    (folder / "planted_tape" / "__init__.py").touch()
    (folder / "planted_tape" / "subsystem.py").write_text(TAPE.replace("NAME", "planted_tape"))
    (folder / "planted_notes").mkdir()
    (folder / "planted_notes" / "__init__.py").touch()
    assert subsystem_names() == (*OURS, "planted_tape")
    limits = HostLimits(host(), ["planted_tape"])
    found = limits.of("planted_tape", start(workload="rewind"), end())
    assert found == {"rewind": Limit(value=3e9, unit="alpha")}
    code = (
        f"import services; services.__path__.append({str(folder)!r}); "
        "from grafana.generate import generated; from hostbench.model.registry import *; "
        "print('planted_tape' in subsystem_names(), 'overview.json' in generated())"
    )
    # Tests of the same process may have changed its directory.
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT
    )
    assert (made.stdout, made.stderr) == ("True True\n", ""), "boards need no headline of it"


def test_one_of_ours_that_cannot_import_is_an_error(folder: Path) -> None:
    (folder / "planted_broken").mkdir()
    (folder / "planted_broken" / "__init__.py").touch()
    (folder / "planted_broken" / "subsystem.py").write_text("import no_such_library\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        subsystems()


def test_what_does_not_declare_limits_has_none() -> None:
    assert Subsystem(name="tape", title="Tape", port=1).limits(host(), start(), end()) == {}


def test_the_cpu_answers_for_an_unknown_cpu() -> None:
    found = HostLimits(host(), ["cpu"]).of("cpu", start(), end())[RATE]
    assert found.value is None
    assert "unknown micro-architecture" in (found.reason or "")


def test_one_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"no subsystem 'cqu'; did you mean 'cpu'\? give cpu, "):
        find_subsystem("cqu")


# ---- entry points ----


def test_a_package_adds_one(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "tape_package", TAPE.replace("NAME", "tape"))
    assert subsystem_names() == (*OURS, "tape")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("module", "value", "parts"),
    [
        ("raise OSError('no\\nlicence')", None, ["its import raises OSError: no licence"]),
        ("import no_such_library", None, ["ModuleNotFoundError", "no_such_library"]),
        ("import sys; sys.exit(3)", None, ["its import raises SystemExit: 3"]),
        ("", None, ["AttributeError", "SUBSYSTEM"]),
        ("SUBSYSTEM = 'tape'", None, ["is of type str, not a hostbench.model.subsystem.Subsystem"]),
        (TAPE.replace("NAME", "cpu"), None, ["there is a subsystem 'cpu' already"]),
        (TAPE.replace("NAME", "Tape drive"), None, ["'Tape drive' is not a name of a subsystem"]),
        (TAPE.replace("NAME", "disc").replace("8100", "80000"), None, ["80000 is not a port"]),
        ("", "broken_tape.SUBSYSTEM", ["ModuleNotFoundError"]),
    ],
)
def test_one_that_cannot_be_used_costs_a_line(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    value: str | None,
    parts: list[str],
) -> None:
    for name in ("broken_tape", "sound_tape"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    install(site, "broken_tape", module, value)
    install(site, "sound_tape", TAPE.replace("NAME", "tape"))
    assert subsystem_names() == (*OURS, "tape")
    (line,) = capsys.readouterr().err.splitlines()
    origin = (
        f"package broken_tape 1.2, entry point broken_tape = {value or 'broken_tape:SUBSYSTEM'}"
    )
    assert line.startswith(f"hostbench: skipped the subsystem of {origin}: ")
    assert all(part in line for part in parts)
    assert "; " in line, "the remedy"


def test_one_that_does_not_load_costs_a_line(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken_tape", "sound_tape"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    load = """
    def load(self):
        raise OSError('no\\nlicence')

SUBSYSTEM"""
    broken = TAPE.replace("NAME", "reel").replace("8100", "8101").replace("\nSUBSYSTEM", load)
    install(site, "broken_tape", broken)
    install(site, "sound_tape", TAPE.replace("NAME", "tape"))
    assert subsystem_names() == (*OURS, "reel", "tape")
    load_subsystems()
    assert subsystem_names() == (*OURS, "tape")
    assert capsys.readouterr().err == (
        "hostbench: skipped the subsystem of package broken_tape 1.2, entry point broken_tape = "
        "broken_tape:SUBSYSTEM: its load() raises OSError: no licence; update or uninstall the "
        "package\n"
    )


def test_one_of_ours_that_does_not_load_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Subsystem) -> None:
        raise OSError(self.name)

    monkeypatch.setattr(type(find_subsystem("cpu")), "load", fail)
    with pytest.raises(OSError, match="cpu"):
        load_subsystems()


# ---- names in bodies and answers ----


def test_a_body_names_one_that_is_installed() -> None:
    known: TypeAdapter[str] = TypeAdapter(KnownSubsystem)
    assert known.validate_python("net") == "net"
    with pytest.raises(ValidationError, match="Input should be 'cpu', 'mem', 'disk', 'net'"):
        known.validate_python("tape")


def test_an_answer_may_be_about_one_that_the_reader_lacks() -> None:
    answered: TypeAdapter[str] = TypeAdapter(AnsweredSubsystem)
    assert answered.validate_python("tape") == "tape"
    with pytest.raises(ValidationError):
        answered.validate_python("../tape")


@pytest.mark.parametrize("annotation", [KnownSubsystem, AnsweredSubsystem])
def test_the_schema_lists_them(annotation: type[str]) -> None:
    schema = TypeAdapter(annotation).json_schema()
    assert schema == {"type": "string", "enum": list(OURS)}
