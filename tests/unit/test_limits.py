"""How the limits of a subsystem are found: by the name of its module."""

import sys
from pathlib import Path

import pytest

from hostbench.limits import HostLimits
from hostbench.models.limit import Limit
from tests.unit.records import RATE, end, host, start

MODULE = """
from hostbench.models.limit import Limit

def limits(host, start, end):
    return {start.workload: Limit(value=end.metrics["clock_hertz"], unit=host.hostname)}
"""


def planted(directory: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str) -> str:
    """A subsystem beside the real ones whose limits module has `text`."""
    (directory / name).mkdir()
    (directory / name / "limits.py").write_text(text)
    import services

    monkeypatch.setattr(services, "__path__", [*services.__path__, str(directory)])
    monkeypatch.delitem(sys.modules, f"services.{name}", raising=False)
    monkeypatch.delitem(sys.modules, f"services.{name}.limits", raising=False)
    return name


def test_the_module_gets_host_start_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = planted(tmp_path, monkeypatch, MODULE, "planted_tape")
    found = HostLimits(host(), [name]).of(name, start(workload="rewind"), end())
    assert found == {"rewind": Limit(value=3e9, unit="alpha")}


def test_a_subsystem_without_limits_has_none() -> None:
    assert HostLimits(host(), ["tape"]).of("tape", start(), end()) == {}


def test_a_limits_module_that_cannot_import_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = planted(tmp_path, monkeypatch, "import no_such_library\n", "planted_broken")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        HostLimits(host(), [name])


def test_the_cpu_module_answers_for_an_unknown_cpu() -> None:
    found = HostLimits(host(), ["cpu"]).of("cpu", start(), end())[RATE]
    assert found.value is None
    assert "unknown micro-architecture" in (found.reason or "")
