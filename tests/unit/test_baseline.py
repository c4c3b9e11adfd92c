"""Baselines: how they are made, merged and refused, and how often a host beside one is wronged."""

import json
import math
import random
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.cli.command_line import run_command_line
from hostbench.decisions.baseline import anonymous, made_of, measured_job, merged
from hostbench.decisions.baseline_files import (
    content_of,
    files,
    found_for,
    read_baseline,
    user_salt,
)
from hostbench.decisions.host_words import check_sentences, figure_words
from hostbench.decisions.hostcheck import check_host
from hostbench.decisions.population import error_shares, split_of
from hostbench.decisions.tolerance import (
    DISTRIBUTION_FREE_FROM,
    benjamini_hochberg,
    chance_below,
    holm,
    tolerance_factor,
)
from hostbench.model.baseline import Baseline, HostWord, MeasuredJob
from tests.unit.baseline_documents import of_host, of_hosts
from tests.unit.baseline_hosts import called_low, host_jobs, machine_of, many_jobs, refused
from tests.unit.report_documents import stored

SOUND = (0.97, 0.98, 0.99, 0.985, 0.975, 0.99, 0.992)


# ---- arithmetic ----


@pytest.mark.parametrize(("n", "k"), [(5, 4.203), (10, 2.911), (20, 2.396)])
def test_tolerance_factors_are_those_of_tables(n: int, k: float) -> None:
    assert tolerance_factor(n) == pytest.approx(k, abs=0.0005)


@pytest.mark.exhaustive
def test_tolerance_factors_and_chances_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for n in (5, 7, 12, 33, 58):
        shift = stats.norm.ppf(0.95) * math.sqrt(n)
        expected = stats.nct.ppf(0.95, n - 1, shift) / math.sqrt(n)
        assert tolerance_factor(n) == pytest.approx(expected, rel=1e-6)
        for t in (-1.5, 0.5, 3.0):
            assert chance_below(t, 1.0, n) == pytest.approx(stats.t.sf(t, n - 1), rel=1e-6)


def test_the_lowest_of_59_hosts_is_a_limit() -> None:
    assert DISTRIBUTION_FREE_FROM == 59
    assert 1 - 0.95**59 >= 0.95 > 1 - 0.95**58


def test_holm_goes_on_where_it_has_found_one() -> None:
    assert holm([0.02, 0.001, 0.5], 0.05, [1, 1, 1]) == [True, True, False]
    assert holm([0.03, 0.03, 0.5], 0.05, [1, 1, 1]) == [False, False, False]
    assert holm([], 0.05, []) == []
    assert holm([0.03, 0.03, 0.5], 0.05, [8, 1, 1]) == [True, False, False]


def test_benjamini_hochberg_takes_those_before_the_last() -> None:
    assert benjamini_hochberg([0.04, 0.03, 0.9, 0.02], 0.06) == [True, True, False, True]


def alone(values: dict[str, float]) -> dict[str, list[float]]:
    """Hosts of one job."""
    return {name: [value] for name, value in values.items()}


@pytest.mark.parametrize("n", [5, 6, 10, 20, 60])
def test_one_population_is_not_taken_for_two(n: int) -> None:
    rng = random.Random(n)
    drawn = [{str(at): rng.gauss(0, 0.05) for at in range(n)} for _ in range(300)]
    assert sum(split_of(alone(values), 0.01) is not None for values in drawn) <= 8


def test_two_populations_are_found() -> None:
    rng = random.Random(4)
    values = {f"{at}": rng.gauss(0.3 if at % 3 else 0.0, 0.01) for at in range(12)}
    split = split_of(alone(values), 1e-4)
    assert split is not None and set(split.low) == {"0", "3", "6", "9"} == set(split.odd)


@pytest.mark.parametrize("odd", [1, 2, 3])
@pytest.mark.parametrize("by", [-0.1, 0.1])
def test_a_few_odd_hosts_are_found(odd: int, by: float) -> None:
    rng = random.Random(9)
    values = {f"{at}": rng.gauss(by if at < odd else 0.0, 0.005) for at in range(14)}
    split = split_of(alone(values), 1e-3)
    assert split is not None and set(split.odd) == {str(at) for at in range(odd)}


def test_jobs_that_stray_make_no_odd_host() -> None:
    rng = random.Random(10)
    hosts = {str(at): [rng.gauss(0, 0.05) for _ in range(3)] for at in range(8)}
    one, all_three = ({**hosts, "0": jobs} for jobs in ([-0.7, -0.7, 0.0], [-0.7, -0.72, -0.69]))
    single = {name: jobs[:1] for name, jobs in all_three.items()}
    assert split_of(one, 1e-3, apart=0.2) is None
    assert split_of(single, 1e-3, apart=0.2, strays=True) is None
    found = split_of(all_three, 1e-3, apart=0.2, strays=True)
    assert found is not None and found.odd == ("0",)


def test_a_figure_that_spreads_has_more_of_the_error_rate() -> None:
    values = {"a": [0.0, 0.01, 0.02], "b": [0.0, 0.01, 0.2], "c": [0.0, 0.3, 0.6]}
    shares = error_shares(values, {"a": "cpu", "b": "cpu", "c": "mem"})
    assert math.fsum(shares.values()) == pytest.approx(1)
    assert shares["c"] == pytest.approx(1 / 3) and shares["b"] > 5 * shares["a"] > 0.4 / 3


# ---- make and merge ----


def baseline_of(factors: tuple[float, ...] = SOUND) -> Baseline:
    return made_of([measured_job(one) for one in of_hosts(factors)])


def test_a_baseline_holds_medians_by_host() -> None:
    rng = random.Random(1)
    found = made_of(host_jobs(rng, 0, 0.02, jobs=3) + host_jobs(rng, 1, 0.02, jobs=1))
    case = next(iter(found.cases.values()))
    of_first = case.hosts[machine_of(0)]
    assert len(of_first.figures) == 3 and of_first.median == sorted(of_first.figures)[1]  # type: ignore[type-var]
    assert case.within is not None and math.sqrt(case.within) == pytest.approx(0.004, rel=0.9)
    assert len(found.hosts[machine_of(1)].jobs) == 1


def test_merging_is_concatenation_without_duplicates() -> None:
    rng = random.Random(2)
    jobs = [host_jobs(rng, number, 0.01, jobs=2) for number in range(4)]
    whole = made_of([job for one in jobs for job in one])
    a = made_of(jobs[0] + jobs[1] + jobs[2][:1])
    b = made_of(jobs[2] + jobs[3])
    assert merged([("a", a), ("b", b)]) == whole == merged([("a", whole), ("b", b)])


def test_a_host_under_two_names_is_one() -> None:
    known = baseline_of()
    together = merged([("own", known), ("given", anonymous(known, b"secret"))])
    assert together == known


def test_disturbed_and_failed_figures_do_not_enter() -> None:
    document = of_host(0)
    taken = measured_job(document).figures
    assert {case.verdict for case in document.cases if case.case in taken} <= {"clean", "noisy"}
    assert len(taken) < len(document.cases)


# ---- what is refused ----


def refusal(*jobs: MeasuredJob) -> str:
    with pytest.raises(UsageError) as error:
        made_of(jobs)
    return error.value.message


def test_jobs_of_two_models() -> None:
    a = measured_job(of_host(0))
    cpu = of_host(1).host.cpu.model_copy(update={"stepping": 8})
    b = measured_job(of_host(1, cpu=cpu))
    assert refusal(a, b) == (
        "job 20261120T000000Z-full-0000 and job 20261120T000001Z-full-0000 are of two models: "
        "stepping 1 and 8; make one baseline of each"
    )


def test_a_job_without_a_digest() -> None:
    job = measured_job(of_host(0)).model_copy(update={"digest": None})
    assert "has no digest" in refusal(job)


def test_two_populations_are_refused_with_the_facts_that_split_them() -> None:
    jobs = [
        measured_job(of_host(number, (0.97 if number < 5 else 0.6) + number / 1000))
        for number in range(10)
    ]
    jobs = [
        job.model_copy(update={"facts": {**job.facts, "governor": name}})
        for job, name in zip(jobs, ["performance"] * 5 + ["powersave"] * 5, strict=True)
    ]
    message = refusal(*jobs)
    assert message.startswith("this is no baseline: its 10 hosts are two populations in cpu.fma")
    assert "they differ in governor (powersave and performance)" in message
    bare = [job.model_copy(update={"facts": {}}) for job in jobs]
    assert "their facts do not explain it" in refusal(*bare)


def test_one_odd_host_is_refused_and_would_have_hidden_others(tmp_path: Path) -> None:
    rng = random.Random(11)
    sound = many_jobs(rng, 7, 0.01, jobs=1)
    odd = host_jobs(rng, 7, 0.01, slow=(0, 0.15))
    message = refusal(*sound, *odd)
    assert message.startswith(
        f"this is no baseline: its host {machine_of(7)} (job {odd[0].job}) is not like the 7 "
        "others in cpu.fma 0, "
    )
    assert message.endswith("; leave this host out, or measure it again") and "\n" not in message
    later = host_jobs(rng, 99, 0.01, slow=(0, 0.1))
    assert check_host(later, made_of(sound)).word is HostWord.LOW
    # In a file it is refused too, and there the job is unknown.
    with pytest.raises(UsageError, match=f"its host {machine_of(7)} is not like the 7 others"):
        merged([("a", made_of(sound)), ("b", made_of(odd))])


def written(path: Path, **changes: object) -> Path:
    raw = json.loads(content_of(baseline_of()))
    path.write_text(json.dumps(raw | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "has schema 2, and this hostbench reads 1; read it with a newer hostbench"),
        ({"schema": 0}, "has schema 0, and this hostbench reads 1; make it again with"),
        ({"kind": "hostbench.result"}, "is a 'hostbench.result' and not a 'hostbench.baseline'"),
        ({"kind": "hostbench.result", "schema": 2}, "is a 'hostbench.result' and not"),
        ({"hosts": {}}, "is not a baseline: hosts"),
        ({"extra": 1}, "is not a baseline: extra"),
    ],
)
def test_files_that_are_no_baseline(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as error:
        read_baseline(written(tmp_path / "one.json", **changes))
    assert words in error.value.message and "\n" not in error.value.message


def test_a_file_that_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("[]")
    with pytest.raises(UsageError, match="is not a baseline: the whole: Input should be"):
        read_baseline(tmp_path / "one.json")


def test_a_job_without_a_figure_is_not_checked(tmp_path: Path) -> None:
    job = measured_job(of_host(50)).model_copy(update={"figures": {}})
    (answer, *_) = check_sentences(check_host([job], baseline_of()))
    assert answer == "no reference: the job has no clean or noisy figure; measure again."


def test_a_file_that_is_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "one.json")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UsageError, match="is cut short or damaged: its 5000 bytes"):
        read_baseline(path)
    with pytest.raises(UsageError, match="there is no"):
        read_baseline(tmp_path / "none.json")


def edited(tmp_path: Path, **changes: object) -> str:
    """The message about a file in which the first host's figures of the second case are others."""
    raw = json.loads(content_of(baseline_of()))
    case = list(raw["cases"].values())[1]
    next(iter(case["hosts"].values())).update(changes)
    path = tmp_path / "one.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(UsageError) as error:
        read_baseline(path)
    return error.value.message


def test_what_does_not_hold(tmp_path: Path) -> None:
    assert "is not a sound baseline: the median of cpu.fma" in edited(tmp_path, median=1.0)
    above = edited(tmp_path, figures=[1e12], median=1e12)
    assert "is better than its limit of 13.20 Gop/s" in above and "the variance between" in above
    assert "has 2 figures of" in edited(tmp_path, figures=[1.0, 1.0])
    assert "has no figure of" in edited(tmp_path, figures=[None])


# ---- for others ----


def test_an_export_names_no_host() -> None:
    document = of_host(3, hostname="payroll-db-7")
    exported = content_of(anonymous(made_of([measured_job(document)]), b"secret")).decode()
    assert (
        "payroll" not in exported
        and machine_of(3) not in exported
        and document.job.id not in exported
    )
    again = content_of(anonymous(made_of([measured_job(document)]), b"secret")).decode()
    other = content_of(anonymous(made_of([measured_job(document)]), b"another")).decode()
    assert exported == again != other


def test_the_secret_is_kept(tmp_path: Path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert user_salt(environment) == user_salt(environment)
    assert (tmp_path / "hostbench/baseline-salt").stat().st_mode & 0o077 == 0


# ---- a host beside others ----


def test_a_slow_host_is_low_and_a_sound_one_is_not() -> None:
    known = baseline_of()
    slow = check_host([measured_job(of_host(50, 0.9))], known)
    sound = check_host([measured_job(of_host(51, 0.98))], known)
    assert slow.word is HostWord.LOW and sound.word is HostWord.AS_EXPECTED
    assert slow.hosts == 7 and slow.error == 0.01
    worst = next(one for one in slow.figures if one.word is HostWord.LOW)
    assert figure_words(worst) == (
        "cpu.fma fp64 scalar 1 thread 11.74 Gop/s, expected at least 12.45 Gop/s (7 hosts, "
        "95/95): low"
    )
    sentences = list(check_sentences(slow))
    assert sentences[0] == (
        "low: compared with 7 other hosts of this model, 12 of 12 headline figures are low."
    )
    assert sum("look at the clock" in one for one in sentences) == 1
    assert (
        "Error rate: at most 1 % of sound hosts are called low, over all 12 headline figures."
        in sentences
    )


def test_a_host_is_not_held_against_itself() -> None:
    known = baseline_of()
    assert check_host([measured_job(of_host(0, 0.97))], known).hosts == 6


@pytest.mark.parametrize("hosts", [1, 4])
def test_a_baseline_of_few_hosts_falls_back_on_the_limit(hosts: int) -> None:
    found = check_host([measured_job(of_host(50, 0.9))], baseline_of(SOUND[:hosts]))
    assert found.word is HostWord.NO_REFERENCE and found.error is None
    assert "uses it from 5 hosts on. Until then the limit is the reference" in found.notes[0]
    assert all(one.share_of_limit for one in found.headlines)


def test_times_are_low_where_they_are_long() -> None:
    rng = random.Random(5)
    known = made_of(many_jobs(rng, 20, 0.01))
    at = 10  # net.tcp_rr
    found = check_host(host_jobs(rng, 99, 0.01, slow=(at, 0.2)), known)
    low = [one for one in found.figures if one.word is HostWord.LOW]
    assert [one.workload for one in low] == ["net.tcp_rr"]
    assert low[0].expected is not None and low[0].value > low[0].expected
    assert low[0].lost_ratio == pytest.approx(0.2, abs=0.03)
    assert "expected at most" in figure_words(low[0])


def test_other_figures_are_named_and_do_not_decide() -> None:
    rng = random.Random(6)
    known = made_of(many_jobs(rng, 20, 0.01))
    found = check_host(host_jobs(rng, 99, 0.01, slow=(30, 0.2)), known)
    assert found.word is HostWord.AS_EXPECTED
    off = {one.case: one for one in found.figures if one.word is not HostWord.AS_EXPECTED}
    assert off[f"{30:08x}"].word is HostWord.SUSPECT and len(off) <= 2


def test_twelve_headlines_decide() -> None:
    rng = random.Random(7)
    known = made_of(many_jobs(rng, 6, 0.01))
    assert len(check_host(host_jobs(rng, 99, 0.01), known).headlines) == 12


# ---- error rates ----


@pytest.mark.parametrize(
    ("spread", "checked", "most"),
    [(0.02, 200, 4), (0.02, 1000, 10), (0.01, 1000, 10), (0.04, 1000, 10)],
)
@pytest.mark.sampled(4)
def test_sound_hosts_are_seldom_called_low(spread: float, checked: int, most: int) -> None:
    """Forty figures a host, twelve of them headlines."""
    assert called_low(20, spread, checked) <= most


@pytest.mark.exhaustive
def test_steady_sound_hosts_are_seldom_called_low() -> None:
    assert called_low(20, 0.02, 1000, within=0.004) <= 10


@pytest.mark.parametrize("within", [None, 0.004])
@pytest.mark.parametrize(("hosts", "spread", "jobs"), [(10, 0.01, 1), (100, 0.02, 3)])
@pytest.mark.sampled(4)
def test_hosts_that_are_a_tenth_slower_are_found(
    hosts: int, spread: float, jobs: int, within: float | None
) -> None:
    assert called_low(hosts, spread, 200, slow=0.1, jobs=jobs, within=within) >= 190


@pytest.mark.exhaustive
@pytest.mark.parametrize(("hosts", "spread", "jobs"), [(8, 0.01, 1), (20, 0.02, 1), (8, 0.04, 3)])
@pytest.mark.parametrize("within", [None, 0.004])
def test_baselines_of_sound_hosts_are_seldom_refused(
    hosts: int, spread: float, jobs: int, within: float | None
) -> None:
    """1 % of 300 are three, and of such counts one in a hundred is above eight."""
    assert refused(hosts, spread, 300, jobs=jobs, within=within) <= 8


@pytest.mark.parametrize(("hosts", "least"), [(8, 60), (12, 85), (20, 95)])
def test_baselines_with_one_odd_host_are_refused(hosts: int, least: int) -> None:
    assert refused(hosts, 0.01, 100, slow=0.1) >= least


def test_one_job_of_a_guest_makes_its_memory_suspect_at_most() -> None:
    rng = random.Random(8)
    known = made_of(many_jobs(rng, 20, 0.01, within=None))
    slow = host_jobs(rng, 99, 0.01, jobs=2, slow=(3, 0.9), within=None)
    one, both = check_host(slow[:1], known), check_host(slow, known)
    assert one.word is HostWord.SUSPECT and both.word is HostWord.LOW
    assert next(of for of in one.figures if of.word is HostWord.SUSPECT).needs_another


# ---- files and the command ----


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of seven sound hosts and, the latest, of one that is slow."""
    root = tmp_path_factory.mktemp("jobs") / "results"
    for one in (*of_hosts(SOUND), of_host(50, 0.9)):
        stored(one, root)
    return root


@pytest.fixture
def place(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, without the user's folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOSTBENCH_RESULTS", str(results))
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(["baseline", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_whole_way(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, "check", "latest")
    assert code == 21 and out.startswith(
        "no reference: no baseline has enough other hosts of Intel"
    )
    assert "cpu.fma fp64 scalar 1 thread 11.74 Gop/s, 88.9 % of its limit" in out

    code, _, err = printed(capsys, "make", "*T00000[0-3]*", "--output", "a.json")
    assert code == 0 and "a.json: 4 hosts, 4 jobs" in err and "Below 5 hosts" in err
    assert printed(capsys, "make", "*T00000[3-6]*", "--output", "b.json")[0] == 0
    (place / "baselines").mkdir()
    target = "baselines/c.json"
    code, _, err = printed(capsys, "merge", "a.json", "b.json", "--output", target)
    assert code == 0 and f"{target}: 7 hosts, 7 jobs" in err

    code, out, _ = printed(capsys, "check", "latest")
    assert code == 20 and out.startswith("low: compared with 7 other hosts of this model, 12")
    assert json.loads(printed(capsys, "check", "latest", "--json")[1])["word"] == "low"
    code, out, _ = printed(capsys, "show", target)
    assert code == 0 and "12.45 Gop/s" in out
    code, out, _ = printed(capsys, "list")
    assert code == 0 and "baselines/c.json: 7 hosts" in out and "1 baseline in" in out

    code, out, err = printed(capsys, "export", target, "--anonymous", "--output", "d.json")
    assert code == 2 and "add --yes" in err and not (place / "d.json").exists()
    shown = json.loads(out)
    code, out, _ = printed(capsys, "export", target, "--anonymous", "--output", "d.json", "--yes")
    assert code == 0 and json.loads((place / "d.json").read_text()) == shown == json.loads(out)
    assert printed(capsys, "export", target)[0] == 2


def test_files_that_cannot_be_used_are_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place / "data/hostbench/baselines"
    folder.mkdir(parents=True)
    (folder / "bad.json").write_text("{")
    code, out, _ = printed(capsys, "check", "latest")
    assert code == 21 and "A baseline was not used: " in out and "bad.json is cut short" in out
    code, out, _ = printed(capsys, "list")
    assert code == 0 and "is cut short" in out


def test_baselines_in_several_folders_are_one(place: Path) -> None:
    environment = {"XDG_DATA_HOME": str(place / "data"), "XDG_CONFIG_HOME": str(place / "config")}
    jobs = [measured_job(one) for one in of_hosts(SOUND)]
    for base, some in ((Path(), jobs[:4]), (place / "config/hostbench", jobs[3:])):
        (base / "baselines").mkdir(parents=True)
        (base / "baselines/one.json").write_bytes(content_of(made_of(some)))
    assert len(files(environment)) == 2
    paths, together, problems = found_for(jobs[0].key, environment)
    assert together is not None and len(together.hosts) == 7
    assert len(paths) == 2 and not problems


def test_files_of_two_populations_are_not_used_together(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place / "baselines"
    folder.mkdir()
    for name, factor, first in (("fast", 0.98, 0), ("slow", 0.6, 100)):
        some = [measured_job(of_host(first + at, factor + at / 1000)) for at in range(5)]
        (folder / f"{name}.json").write_bytes(content_of(made_of(some)))
    code, out, _ = printed(capsys, "check", "latest")
    assert code == 21
    assert "baselines/fast.json and baselines/slow.json were not used together: " in out
    assert "its 10 hosts are two populations in cpu.fma" in out
    code, _, err = printed(
        capsys, "merge", "baselines/fast.json", "baselines/slow.json", "--output", "both.json"
    )
    assert code == 2 and "are two populations" in err and not (place / "both.json").exists()
    code, out, _ = printed(capsys, "check", "latest", "--baseline", "baselines/slow.json")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "nope"), "there is no job 'nope'"),
        (("check", "*T00000*"), "are of two hosts; check them one by one"),
        (("check", "latest", "--baseline", "no.json"), "there is no no.json"),
        (("make", "latest", "--output", "."), "is a directory"),
        (("make", "results/none/result.json", "--output", "x.json"), "cannot read results/none"),
        (("merge", "no.json", "--output", "x.json"), "there is no no.json"),
        (("show", "no.json"), "there is no no.json"),
    ],
)
def test_bad_requests_are_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    code, _, err = printed(capsys, *arguments)
    assert code == 2 and words in err and err.count("\n") == 1


def test_a_baseline_of_another_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cpu = of_host(0).host.cpu.model_copy(update={"model_name": "Another CPU"})
    job = measured_job(of_host(0, cpu=cpu))
    (place / "other.json").write_bytes(content_of(made_of([job])))
    code, _, err = printed(capsys, "check", "latest", "--baseline", "other.json")
    assert code == 2 and "other.json is of another model" in err
    assert "cpu Another CPU and Intel(R) Xeon(R) Processor" in err
