"""A comparison of benchmarks/gpu that could not be made counts as none that was met."""

import pytest

from benchmarks.gpu import latencies
from benchmarks.gpu.trials import Table
from hostbench.host.gpu import ListedDevice


def test_a_table_without_a_row_is_not_met(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        Table("none", ("case",)).end()
    assert ended.value.code == 2
    assert "nothing was compared" in capsys.readouterr().err


def test_nor_is_a_card_of_which_nothing_is_published(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = ListedDevice(
        index=0, backend="cuda", name="A card", type="gpu", compute_capability="8.9"
    )
    monkeypatch.setattr(latencies, "device", lambda: card)
    monkeypatch.setattr("sys.argv", ["latencies"])
    with pytest.raises(SystemExit) as ended:
        latencies.main()
    assert ended.value.code == 2
    assert "of A card no published cycles are known" in capsys.readouterr().err
