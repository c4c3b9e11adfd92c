"""The series for Prometheus: what stands in them, and that parsers and node_exporter take them."""

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_of
from prometheus_client.parser import text_string_to_metric_families

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.decisions.hostcheck import check_host
from hostbench.decisions.index import INDEX, FigureIndex, is_stale, newest_statuses
from hostbench.decisions.status import statuses_of
from hostbench.judge.overview import WORST_FIRST, overview
from hostbench.model.baseline import HostWord
from hostbench.model.decision import SubsystemStatus
from hostbench.model.result import CampaignMember, ConditionState, Verdict
from hostbench.page.output import Format, write_report
from hostbench.page.series import (
    CHECKS,
    CONDITIONS,
    LABEL_CHARACTERS_MOST,
    SERIES,
    SERIES_MOST,
    VERDICTS,
    Series,
    check_textfile,
    exposition,
    job_series,
    unit_words,
    write_textfile,
)
from hostbench.results.store import JobDirectory
from tests.each import each
from tests.machine_code import ROOT
from tests.unit.baseline_documents import of_host, of_hosts
from tests.unit.decided import stored_job
from tests.unit.report_documents import full_run

FACTORS = (0.99, 1.0, 1.005, 0.995, 1.01, 1.002)
# What node_exporter's parser takes (prometheus/common, expfmt, LegacyValidation).
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)


def families(text: bytes | str) -> dict[str, Metric]:
    """By name, as Prometheus' text parser reads them. Refuses what node_exporter's collector
    refuses: a family that comes twice, one without its text, time stamps, exemplars, a series that
    comes twice."""
    text = text.decode() if isinstance(text, bytes) else text
    found: dict[str, Metric] = {}
    for family in text_string_to_metric_families(text):
        assert family.name not in found and NAME.fullmatch(family.name)
        assert family.type == "gauge" and family.documentation
        assert len({repr(one.labels) for one in family.samples}) == len(family.samples)
        assert all(one.timestamp is None and one.exemplar is None for one in family.samples)
        found[family.name] = family
    lines = text.splitlines()
    assert text.endswith("\n")
    for word in ("HELP", "TYPE"):
        named = [line.split()[2] for line in lines if line.startswith(f"# {word} ")]
        assert sorted(named) == sorted(found)
    return found


def status(subsystem: str = "cpu", host: str = "node1", **fields: Any) -> SubsystemStatus:
    """One with all that there may be."""
    return SubsystemStatus(
        **{
            "host": host,
            "subsystem": subsystem,
            "job": "20261120T205638Z-full-3f2a",
            "suite": "full",
            "ended_unix_s": 1.7952e9,
            "workload": f"{subsystem}.fma",
            "label": "fp64 1 thread",
            "unit": "operation/s",
            "figure": 1.5e12,
            "share_of_limit": 0.97,
            "delivered_ratio": 0.88,
            "verdict": Verdict.NOISY,
            "condition": ConditionState.STOLEN,
            "condition_ratio": 0.1,
            "word": HostWord.SUSPECT,
            "lost_ratio": 0.03,
            **fields,
        }
    )


def test_a_job_gives_the_line_of_its_overview() -> None:
    document = full_run(2, ("fma", "add_sub"))
    (line,) = overview(document.cases)
    found = families(job_series(document))
    assert line.headline is not None and line.worst is not None
    metric = line.headline.metrics[line.headline.primary]
    where = {"host": document.host.hostname, "subsystem": "cpu"}
    value = {name: family.samples[0].value for name, family in found.items()}
    labels = {name: family.samples[0].labels for name, family in found.items()}
    assert value["hostbench_headline_operations_per_second"] == metric.statistics.median
    assert value["hostbench_headline_limit_ratio"] == metric.efficiency
    assert value["hostbench_delivered_ratio"] == line.delivered_ratio
    assert VERDICTS[int(value["hostbench_verdict"])] is line.worst
    assert value["hostbench_job_end_time_seconds"] == document.job.finished_unix_s
    assert labels["hostbench_headline_operations_per_second"] == {**where, "workload": "cpu.fma"}
    assert labels["hostbench_job_info"] == {
        **where,
        "job": document.job.id,
        "suite": "full",
        "workload": "cpu.fma",
        "case": line.headline.label,
    }
    assert "hostbench_baseline_check" not in value  # there is no baseline


def test_the_word_beside_a_baseline() -> None:
    baseline = made_of([measured_job(one) for one in of_hosts(FACTORS)])
    for factor, word in ((1.0, HostWord.AS_EXPECTED), (0.8, HostWord.LOW)):
        document = of_host(50, factor)
        (one,) = statuses_of(document, check_host([measured_job(document)], baseline))
        assert one.word is word and one.lost_ratio == pytest.approx(1 - factor, abs=0.02)
        found = families(exposition([one]))
        (sample,) = found["hostbench_baseline_check"].samples
        assert CHECKS[int(sample.value)] is word


def test_the_host_of_a_campaign_is_its_node() -> None:
    """The pod has a name of its own, another one each time."""
    member = CampaignMember(
        campaign="a", engine="kubernetes", cluster="c", node="node7", lock="lease"
    )
    document = of_host(1).model_copy(update={"member": member})
    (one,) = statuses_of(document, check_host([measured_job(document)], None))
    assert one.host == "node7" != document.host.hostname


def test_each_state_has_its_number_and_its_word_in_the_text() -> None:
    assert set(VERDICTS) == set(Verdict) == set(WORST_FIRST)
    assert set(CONDITIONS) == set(ConditionState)
    assert set(CHECKS) == set(HostWord) - {HostWord.NO_REFERENCE}
    found = families(exposition([status()]))
    for name, states in (
        ("hostbench_verdict", VERDICTS),
        ("hostbench_condition", CONDITIONS),
        ("hostbench_baseline_check", CHECKS),
    ):
        for number, state in enumerate(states):
            assert f"{number} {state}" in found[name].documentation
    assert found["hostbench_verdict"].samples[0].value == VERDICTS.index(Verdict.NOISY)


def test_what_is_unknown_has_no_series() -> None:
    unknown = SubsystemStatus(host="a", subsystem="cpu", job="j", suite="s", ended_unix_s=None)
    assert list(families(exposition([unknown]))) == ["hostbench_job_info"]
    assert exposition([]) == b""
    no_reference = families(exposition([status(word=HostWord.NO_REFERENCE)]))
    assert "hostbench_baseline_check" not in no_reference


@each(("subsystems", "rows"), [(1, 10), (5, 10), (6, 8), (7, 7), (50, 1), (60, 1)])
def test_a_host_has_at_most_fifty_series(subsystems: int, rows: int) -> None:
    """Whatever is installed; the first rows of the table stay."""
    names = [f"sub{number}" for number in range(subsystems)]
    statuses = [status(name, host) for host in ("node1", "node2") for name in names]
    found = families(exposition(statuses))
    samples = [sample for family in found.values() for sample in family.samples]
    for host in ("node1", "node2"):
        of_one = [sample for sample in samples if sample.labels["host"] == host]
        assert len(of_one) == min(subsystems, SERIES_MOST) * rows <= SERIES_MOST
    assert list(found) == [row.name.format(unit="operations_per_second") for row in SERIES[:rows]]


def test_labels_are_escaped_and_bounded() -> None:
    odd = 'a"b\\c\nd\x7f\ud800é' + "x" * 500
    found = families(exposition([status(host=odd[:12], label=odd, suite=odd)]))
    (info,) = found["hostbench_job_info"].samples
    assert info.labels["case"].startswith('a"b\\c d ?éxxx') and info.labels["case"].endswith("x…")
    assert len(info.labels["case"]) == LABEL_CHARACTERS_MOST
    assert info.labels["host"] == 'a"b\\c d ?éxx'


@each(
    ("unit", "words"),
    [
        ("operation/s", "operations per second"),
        ("byte/s", "bytes per second"),
        ("bit/s", "bits per second"),
        ("s", "seconds"),
        ("Hz", "hertz"),
        ("1", "ratio"),
        ("1/s", "per second"),
        ("Größe{}\n/Tag", "gr es per tag"),
    ],
)
def test_a_unit_is_in_the_name(unit: str, words: str) -> None:
    assert unit_words(unit) == words
    assert f"hostbench_headline_{words.replace(' ', '_')}" in families(
        exposition([status(unit=unit)])
    )


def test_units_of_two_hosts_are_two_families() -> None:
    two = [status(host="a"), status(host="b", unit="byte/s")]
    found = families(exposition(two))
    assert {name for name in found if name.startswith("hostbench_headline_")} == {
        "hostbench_headline_limit_ratio",
        "hostbench_headline_bytes_per_second",
        "hostbench_headline_operations_per_second",
    }


def test_openmetrics_reads_them_too() -> None:
    """Our text is Prometheus', which node_exporter takes; with the last line of OpenMetrics it is
    OpenMetrics as well."""
    text = exposition([status(), status("mem", unit="byte/s")]).decode()
    read = {one.name: one for one in openmetrics_of(f"{text}# EOF\n")}  # type: ignore[no-untyped-call]
    assert set(read) == set(families(text))


# ---- the file ----


@pytest.fixture
def job(tmp_path: Path) -> JobDirectory:
    return stored_job(tmp_path / "results", 1)


def test_the_file_is_there_as_a_whole_and_for_everybody(job: JobDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "textfiles"
    folder.mkdir()
    target = folder / "hostbench.prom"
    target.write_text("something of before")
    before = target.stat().st_ino
    umask = os.umask(0o077)
    try:
        write_textfile(job.load(), target)
        write_report(job, Format.OPENMETRICS, str(folder / "other.prom"))
    finally:
        os.umask(umask)
    assert families(target.read_text()) and target.stat().st_ino != before
    assert (folder / "other.prom").read_text() == target.read_text()
    assert sorted(one.name for one in folder.iterdir()) == ["hostbench.prom", "other.prom"]
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o644}


def test_a_failed_write_is_one_line_with_the_way_to_do_it_later(
    job: JobDirectory, tmp_path: Path
) -> None:
    target = tmp_path / "gone" / "hostbench.prom"
    with pytest.raises(ResourceError) as refused:
        write_textfile(job.load(), target)
    later = f"hostbench report {job.id} --format openmetrics --output {target}"
    assert later in refused.value.message and "No such file" in refused.value.message
    assert refused.value.exit_code is ExitCode.RESOURCE


def test_a_bad_name_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    check_textfile(tmp_path / "hostbench.prom")
    (tmp_path / "folder.prom").mkdir()
    for name in ("hostbench.txt", "folder.prom", "-"):
        with pytest.raises(UsageError, match=r"ends in \.prom, and node_exporter reads no others"):
            check_textfile(tmp_path / name)
    with pytest.raises(ResourceError, match="there is no directory"):
        check_textfile(tmp_path / "gone" / "hostbench.prom")


# ---- the index ----


def test_the_newest_status_of_each_subsystem_of_each_host(tmp_path: Path) -> None:
    for number, (host, factor) in enumerate([("a", 1.0), ("b", 1.0), ("a", 0.9), ("b", 0.8)]):
        stored_job(tmp_path, number, factor, host=host)
    with pytest.raises(sqlite3.Error):
        newest_statuses(tmp_path)
    assert is_stale(tmp_path)
    with FigureIndex(tmp_path) as index:
        index.refresh()
    assert not is_stale(tmp_path)
    found = newest_statuses(tmp_path)
    assert [(one.host, one.subsystem, one.job[-4:]) for one in found] == [
        ("a", "cpu", "0002"),
        ("b", "cpu", "0003"),
    ]
    assert found == [_own(tmp_path, one.job) for one in found]
    # A job without a document yet makes nothing stale; a removed one does, and the one before it
    # counts again.
    (tmp_path / "20270101T000000Z-full-00ff").mkdir()
    assert not is_stale(tmp_path)
    gone = tmp_path / found[1].job
    for path in gone.iterdir():
        path.unlink()
    gone.rmdir()
    assert is_stale(tmp_path)
    with FigureIndex(tmp_path) as index:
        index.refresh()
    assert [one.job[-4:] for one in newest_statuses(tmp_path)] == ["0002", "0001"]


def _own(root: Path, job: str) -> SubsystemStatus:
    """What the whole document gives, with all its trials."""
    document = JobDirectory(root / job).load()
    (one,) = statuses_of(document, check_host([measured_job(document)], None))
    return one


def test_the_index_has_the_word_beside_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = tmp_path / "XDG_DATA_HOME/hostbench/baselines"
    folder.mkdir(parents=True)
    sound = of_hosts(FACTORS)
    (folder / "model.json").write_bytes(content_of(made_of([measured_job(one) for one in sound])))
    document = of_host(50, 0.8)
    job = JobDirectory(tmp_path / "results" / document.job.id)
    job.path.mkdir(parents=True)
    job.store(document)
    with FigureIndex(tmp_path / "results") as index:
        index.refresh()
    (one,) = newest_statuses(tmp_path / "results")
    assert one.word is HostWord.LOW


def test_an_index_of_another_layout_is_made_again(tmp_path: Path) -> None:
    stored_job(tmp_path, 1)
    with FigureIndex(tmp_path) as index:
        index.refresh()
    with sqlite3.connect(tmp_path / INDEX) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(sqlite3.Error):
        newest_statuses(tmp_path)
    assert is_stale(tmp_path)
    with FigureIndex(tmp_path) as index:
        index.refresh()
    assert newest_statuses(tmp_path)


# ---- the page ----


def page_row(row: Series) -> str:
    """What docs/operations.md says of a row of the table."""
    name, text = (one.format(unit="UNIT", words="UNIT") for one in (row.name, row.text))
    return f"| `{name}` | {text} | {', '.join(f'`{label}`' for label in row.labels)} |"


def test_the_page_has_the_table_and_the_alerts() -> None:
    page = (ROOT / "docs/operations.md").read_text().partition("\n## Prometheus\n")[2]
    section = page.partition("\n## ")[0]
    named = [line for line in section.splitlines() if line.startswith("| `hostbench_")]
    assert named == [page_row(row) for row in SERIES]
    groups = yaml.safe_load((ROOT / "monitoring/alerts.yml").read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert re.findall(r"^\| `(Hostbench\w+)` \|", section, re.MULTILINE) == alerts
