"""Comparisons of benchmarks/gpu: one that could not be made counts as none that was reached, and
tools run as they ask to."""

from dataclasses import dataclass

import pytest

from benchmarks.arguments import given_seconds
from benchmarks.gpu import against_peers, latencies
from benchmarks.gpu.trials import Table
from hostbench.host.gpu import ListedDevice
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Peer, Survey


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


def test_how_long_a_trial_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    for word, seconds in (("", 2.0), ("0.5", 0.5), ("3600", 3600.0)):
        monkeypatch.setenv("HOSTBENCH_GPU_SECONDS", word)
        assert given_seconds("HOSTBENCH_GPU_SECONDS", 2.0) == seconds
    for word in ("two", "0", "-1", "nan", "inf", "3601"):
        monkeypatch.setenv("HOSTBENCH_GPU_SECONDS", word)
        with pytest.raises(SystemExit) as ended:
            given_seconds("HOSTBENCH_GPU_SECONDS", 2.0)
        assert f"HOSTBENCH_GPU_SECONDS={word} is no number" in str(ended.value)
        assert "unset it for 2" in str(ended.value)


@dataclass
class Words(Peer):
    """A tool that is a file of words; its figure is how many there are."""

    tool, package, title = "words", "coreutils", "words"
    measures, unit = "the number of words", "word"
    metric: str | None = None
    why_not: str | None = None

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey(version="1", unsupported=self.why_not)

    def command(self, beside: Beside) -> Command:
        return Command(("cat", "words.txt"), {"words.txt": "one two three\n"})

    def parse(self, output: str, beside: Beside) -> float:
        return float(len(output.split()))


def test_a_tool_finds_the_files_that_it_brings() -> None:
    assert against_peers.theirs(Words(), Beside(cpus=(0,), rate=1.0, elapsed_s=1.0)) == 3


def test_a_tool_that_is_not_compared_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = {"workload": "fma", "params": {}, "placement": {"cpus": [0]}}
    card = ListedDevice(index=0, backend="cuda", name="A card", type="gpu")
    monkeypatch.setattr(against_peers, "gpu_bench", lambda _: {"start": started})
    monkeypatch.setattr(against_peers, "device", lambda: card)
    tools = (Words(), Words(metric="words_per_second", why_not="words is not installed"))
    monkeypatch.setattr(against_peers, "peers", lambda *_: tools)
    table = Table("none", ("case",))
    against_peers.compare(table, "fma", 3, [])
    none, missing = capsys.readouterr().err.splitlines()
    assert none == "fma, words: no ratio, its figure is the number of words"
    assert missing == "fma, words: words is not installed"
    against_peers.compare(table, "fma", 3, ["another"])
    assert not capsys.readouterr().err
