"""From a suite to the cases of one host, and the time they take."""

from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.host import Gpu, Gpus
from hostbench.model.registry import subsystems
from hostbench.model.result import PlannedCase
from hostbench.model.service import TRIAL_S_MOST
from hostbench.model.suite import IdleRules, Repeats, RepeatsChange, Suite, SuiteCase
from hostbench.model.table import Param
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.label import param_title, param_word
from hostbench.plan.suite import ad_hoc_suite, find_suite, load_suite
from hostbench.plan.workloads import case_hash, subsystems_of
from tests.growth import growth
from tests.unit.records import FMA, TABLE, host, param


def plan(*cases: SuiteCase, cpus: tuple[int, ...] = (0, 1), **changes: Any) -> Plan:
    suite = Suite(name="mine", cases=cases, **changes)
    return make_plan(suite, {"cpu": TABLE}, host(allowed_cpus=cpus))


def entry(**changes: Any) -> SuiteCase:
    return SuiteCase(**({"workload": "cpu.fma"} | changes))


def refusal(*cases: SuiteCase) -> str:
    with pytest.raises(UsageError) as caught:
        plan(*cases)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_case_has_every_parameter_and_is_called_with_those_given() -> None:
    (case,) = plan(entry(params={"duration_s": 0.5, "dtype": "fp32"})).cases
    assert case.params == {
        "dtype": "fp32",
        "isa": "best",
        "threads": 2,
        "duration_s": 0.5,
        "warmup_s": 0.1,
        "sample_interval_s": 1,
    }
    assert case.call == {"dtype": "fp32", "threads": 2, "duration_s": 0.5}
    assert case.title == "cpu.fma fp32 2 threads"


def test_a_grid_is_multiplied_out_in_its_order() -> None:
    cases = plan(entry(grid={"threads": [2, 1], "dtype": ["fp32", "fp64"]})).cases
    assert [case.label for case in cases] == [
        "fp32 2 threads",
        "fp64 2 threads",
        "fp32 1 thread",
        "fp64 1 thread",
    ]


def test_all_is_every_choice_that_can_run_here() -> None:
    cases = plan(entry(grid={"isa": "all"})).cases
    assert [case.params["isa"] for case in cases] == ["scalar", "avx2"]
    cases = plan(entry(grid={"isa": ["neon", "all"]})).cases
    assert [case.params["isa"] for case in cases] == ["neon", "scalar", "avx2"]


@pytest.mark.parametrize(
    ("cpus", "threads"), [((0, 1), [1, 2]), ((3,), [1]), ((0, 2, 4, 6), [1, 4])]
)
def test_all_threads_are_the_allowed_cpus_without_repeating_a_case(
    cpus: tuple[int, ...], threads: list[int]
) -> None:
    cases = plan(entry(grid={"threads": [1, "all"]}), cpus=cpus).cases
    assert [case.params["threads"] for case in cases] == threads


def test_all_threads_are_the_cpus_given() -> None:
    params = {"cpus": "0,2-3"}
    cases = plan(entry(params=params, grid={"threads": [1, "all"]}), cpus=(0, 1, 2, 3)).cases
    assert [case.params["threads"] for case in cases] == [1, 3]
    (case,) = plan(entry(params={"cpus": "1"})).cases
    assert case.params["threads"] == 1


def on_gpus(
    devices: tuple[Gpu, ...] | None,
    device: Any = "all",
    reason: str | None = None,
    unsupported: dict[str, str] | None = None,
) -> list[PlannedCase]:
    """The cases of both types on a host with these devices; None: without a look. `reason`: why the
    look failed. `unsupported`: types that the first device lacks."""
    one = param(
        "device", type="text", default="auto", named=True, resolved=("auto",), min=None, max=None
    )
    params = tuple(
        each.model_copy(update={"unsupported": unsupported or {}}) if each.name == "dtype" else each
        for each in FMA.params
    )
    workload = FMA.model_copy(update={"params": (one, *params)})
    table = TABLE.model_copy(update={"workloads": (workload,)})
    gpus = None if devices is None else Gpus(devices=devices, reason=reason)
    seen = host(gpus=gpus, allowed_cpus=(0,))
    grid: Any = {"device": device, "dtype": "all"}
    suite = Suite(name="mine", cases=(entry(grid=grid),), peers="auto")
    return list(make_plan(suite, {"cpu": table}, seen).cases)


CARDS = tuple(Gpu(index=index, backend="cuda", name="a card") for index in (0, 1))
OFFERED_CPU = Gpu(index=2, backend="opencl", name="a CPU", type="cpu")


def test_all_devices_are_the_gpus_of_the_host() -> None:
    cases = on_gpus((*CARDS, OFFERED_CPU))
    assert [case.label for case in cases] == [
        f"device {device} {dtype} 1 thread" for device in (0, 1) for dtype in ("fp64", "fp32")
    ]
    assert [case.params["device"] for case in cases] == ["0", "0", "1", "1"]


@pytest.mark.parametrize("devices", [(), (OFFERED_CPU,)])
@pytest.mark.parametrize("device", ["all", ["auto"]])
def test_without_a_gpu_one_case_is_left_that_takes_no_time(
    devices: tuple[Gpu, ...], device: Any
) -> None:
    (case,) = on_gpus(devices, device)
    assert case.params["device"] == "auto" and case.params["dtype"] == "fp64"
    assert (case.trial_time_s, case.peers_time_s) == (0.0, 0.0)
    # It is requested all the same, and the host may have changed since it was looked at.
    assert case.timeout_s > 30


def test_a_device_that_is_named_is_measured_whatever_it_is() -> None:
    cases = on_gpus((OFFERED_CPU,), [2])
    assert [case.params["device"] for case in cases] == ["2", "2"]
    assert all(case.trial_time_s for case in cases)


def test_a_second_card_may_have_what_the_first_one_lacks() -> None:
    cases = on_gpus(CARDS, unsupported={"fp64": "the first one has none"})
    assert [(case.params["device"], case.params["dtype"]) for case in cases] == [
        ("0", "fp64"), ("0", "fp32"), ("1", "fp64"), ("1", "fp32"),
    ]  # fmt: skip
    # Without a GPU the table says it of all of them, and a device that is named has its own.
    nothing = dict.fromkeys(("fp64", "fp32"), "no GPU")
    assert len(on_gpus((OFFERED_CPU,), [2], unsupported=nothing)) == 2
    assert len(on_gpus((), unsupported=nothing)) == 1


@pytest.mark.parametrize(
    ("devices", "reason"), [(None, None), ((), "gpu-bench did not answer within 30 s")]
)
def test_without_a_look_the_program_decides(
    devices: tuple[Gpu, ...] | None, reason: str | None
) -> None:
    cases = on_gpus(devices, reason=reason)
    assert [case.params["device"] for case in cases] == ["auto", "auto"]
    assert all(case.trial_time_s for case in cases)


def test_the_same_case_in_two_entries_is_measured_once() -> None:
    assert len(plan(entry(), entry(params={"threads": 2})).cases) == 1


def test_fixed_work_takes_the_place_of_the_duration() -> None:
    (case,) = plan(entry(params={"work": 1000})).cases
    assert "duration_s" not in case.params
    assert case.trial_time_s is None
    assert case.timeout_s == 3600
    assert case.label == "2 threads work=1000"


WORDS: list[tuple[Param, object, str]] = [
    (param("threads", noun="thread"), 1, "1 thread"),
    (param("load_streams", noun="load stream"), 2, "2 load streams"),
    (param("sync", type="choice", named=True), "each", "sync each"),
    (param("device", type="text", named=True), "1", "device 1"),
    (param("isa", type="choice"), "avx2", "avx2"),
    (param("pages", type="choice"), "4k", "pages=4k"),
    (param("queue_depth"), 16, "queue_depth=16"),
    (param("block_bytes", unit="byte"), 65536, "block 64 KiB"),
    (param("size_bytes", unit="byte"), "auto", "size auto"),
    (param("cpus", type="cpu_list"), (0, 2), "cpus=0,2"),
    (param("rate", type="number"), None, "rate not set"),
]


@pytest.mark.parametrize(("of", "value", "words"), WORDS)
def test_a_parameter_in_words(of: Param, value: object, words: str) -> None:
    assert param_word(of, value) == words
    assert param_word(of.meaning, value) == words


@pytest.mark.parametrize(
    ("of", "title"),
    [
        (param("threads", noun="thread"), "number of threads"),
        (param("isa", title="instruction set"), "instruction set"),
        (param("queue_depth"), "queue depth"),
        (param("block_bytes"), "block size"),
        (param("size_bytes"), "size"),
    ],
)
def test_what_an_axis_calls_a_parameter(of: Param, title: str) -> None:
    assert param_title(of) == title


def test_a_total_of_bytes_is_a_fixed_work_too() -> None:
    read = FMA.model_copy(
        update={"params": (*FMA.params, param("total_bytes", max=1 << 40, ends_trial=True))}
    )
    table = TABLE.model_copy(update={"workloads": (read,)})
    suite = Suite(name="mine", cases=(entry(params={"total_bytes": 1 << 30}),))
    (case,) = make_plan(suite, {"cpu": table}, host(allowed_cpus=(0,))).cases
    assert "duration_s" not in case.params and case.trial_time_s is None
    both = Suite(name="mine", cases=(entry(params={"total_bytes": 1 << 30, "duration_s": 1}),))
    (case,) = make_plan(both, {"cpu": table}, host(allowed_cpus=(0,))).cases
    assert case.params["duration_s"] == 1 and case.params["total_bytes"] == 1 << 30
    assert case.trial_time_s is not None and 1 <= case.trial_time_s < 2


@pytest.mark.parametrize(("gibibytes", "more_s"), [(1, 600.0), (20, 600.0), (100, 3000.0)])
def test_a_large_file_may_take_long_to_fill(gibibytes: int, more_s: float) -> None:
    sized = param("file_bytes", default=1 << 30, max=1 << 50)
    read = FMA.model_copy(update={"params": (*FMA.params, sized), "setup_s": 3.0})
    table = TABLE.model_copy(update={"workloads": (read,)})
    suite = Suite(name="mine", cases=(entry(params={"file_bytes": gibibytes << 30}),))
    (case,) = make_plan(suite, {"cpu": table}, host(allowed_cpus=(0,))).cases
    assert case.trial_time_s is not None
    assert case.timeout_s == pytest.approx(2 * case.trial_time_s + 30 + more_s)


def test_sizes_are_reported_in_powers_of_two() -> None:
    size = param("size_bytes", max=1 << 40, choices=("auto",))
    sized = FMA.model_copy(update={"params": (*FMA.params, size)})
    table = TABLE.model_copy(update={"workloads": (sized,)})
    suite = Suite(name="mine", cases=(entry(grid={"size_bytes": [4096, 1 << 30, 1000, "auto"]}),))
    cases = make_plan(suite, {"cpu": table}, host(allowed_cpus=(0,))).cases
    assert [case.label.removeprefix("1 thread ") for case in cases] == [
        "size 4 KiB",
        "size 1 GiB",
        "size 1000 B",
        "size auto",
    ]


def test_setting_up_takes_time_and_is_given_more() -> None:
    (quick,) = plan(entry(params={"duration_s": 1.0})).cases
    slow = TABLE.model_copy(
        update={"workloads": (TABLE.workloads[0].model_copy(update={"setup_s": 2.0}),)},
    )
    suite = Suite(name="test", cases=(entry(params={"duration_s": 1.0}),))
    (case,) = make_plan(suite, {"cpu": slow}, host()).cases
    assert quick.trial_time_s is not None
    assert case.trial_time_s == pytest.approx(quick.trial_time_s + 2)
    assert case.timeout_s > quick.timeout_s + 100


def test_setting_up_takes_as_long_as_the_memory_is_large() -> None:
    size = param("size_bytes", max=1 << 40, default="auto", choices=("auto",))
    slow = {"setup_s": 2.0, "setup_s_per_byte": 1e-9, "params": (*FMA.params, size)}
    table = TABLE.model_copy(update={"workloads": (FMA.model_copy(update=slow),)})
    grid: Any = {"size_bytes": [1000, 10**9, 10**11, "auto"]}
    suite = Suite(name="test", cases=(entry(params={"duration_s": 1.0}, grid=grid),))
    small, middle, large, auto = make_plan(suite, {"cpu": table}, host()).cases
    times_s = [case.trial_time_s or 0.0 for case in (small, middle, large, auto)]
    assert [one - times_s[0] for one in times_s[1:]] == pytest.approx([1.0, 100.0, 2.0], abs=1e-5)
    assert large.timeout_s > small.timeout_s + 100


def test_nothing_is_measured_beside_a_naive_workload() -> None:
    sound = make_plan(Suite(name="mine", cases=(entry(),), peers="auto"), {"cpu": TABLE}, host())
    table = TABLE.model_copy(update={"workloads": (FMA.model_copy(update={"naive": True}),)})
    naive = make_plan(Suite(name="mine", cases=(entry(),), peers="auto"), {"cpu": table}, host())
    (beside,), (alone,) = sound.cases, naive.cases
    assert beside.peers and not beside.naive
    assert alone.naive and alone.peers == () and alone.peers_time_s == 0
    with pytest.raises(UsageError, match="peer likwid-bench measures nothing comparable"):
        make_plan(
            Suite(name="mine", cases=(entry(peers=["likwid-bench"]),)), {"cpu": table}, host()
        )


def test_a_file_that_is_kept_is_not_filled_by_every_trial() -> None:
    """But any of them may be the one that fills it: it has the time."""
    kept = param("scratch_fd", scope="host", min=3, max=1 << 20)
    read = FMA.model_copy(update={"params": (*FMA.params, kept), "setup_s": 3.0})
    suite = Suite(name="mine", cases=(entry(),))
    (plain,) = make_plan(suite, {"cpu": TABLE}, host()).cases
    tables = {"cpu": TABLE.model_copy(update={"workloads": (read,)})}
    (case,) = make_plan(suite, tables, host()).cases
    assert case.trial_time_s == plain.trial_time_s
    assert case.timeout_s > plain.timeout_s + 100


def test_no_file_is_so_large_that_a_service_would_not_take_its_trial() -> None:
    size = param("file_bytes", min=4096, max=10**15, default=1 << 30)
    read = FMA.model_copy(update={"params": (*FMA.params, size), "setup_s": 3.0})
    tables = {"cpu": TABLE.model_copy(update={"workloads": (read,)})}
    suite = Suite(name="mine", cases=(entry(params={"file_bytes": 10**15}),))
    (case,) = make_plan(suite, tables, host()).cases
    assert case.timeout_s == TRIAL_S_MOST


def test_label_and_timeout_of_the_suite() -> None:
    (case,) = plan(entry(label="peak", timeout_s=5.0, params={"dtype": "fp32"})).cases
    assert (case.title, case.timeout_s) == ("cpu.fma peak", 5.0)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"workload": "fma"}, ["'fma'", "cpu.fma", "with cpu", "before the dot"]),
        ({"workload": "cqu.fma"}, ["'cqu'", "did you mean 'cpu'?"]),
        ({"workload": "cpu.fmaa"}, ["'cpu.fmaa'", "did you mean 'cpu.fma'?"]),
        ({"params": {"thraeds": 1}}, ["cpu.fma", "'thraeds'", "did you mean 'threads'?"]),
        ({"params": {"threads": 0}}, ["cpu.fma", "threads 0", "1 to 4096 or all"]),
        ({"grid": {"threads": [1, 5000]}}, ["threads 5000", "1 to 4096 or all"]),
        ({"grid": {"isa": ["avx3"]}}, ["'avx3'", "did you mean 'avx2'?"]),
        ({"params": {"isa": "all"}}, ["isa all", "in grid", "avx2"]),
        ({"grid": {"duration_s": "all"}}, ["duration_s", "list the values"]),
        ({"grid": {"lifeline_fd": [3]}}, ["lifeline_fd", "operator"]),
        ({"params": {"threads": 1}, "grid": {"threads": [1]}}, ["threads", "remove one"]),
        ({"params": {"duration_s": 1, "work": 5}}, ["duration_s", "work", "leave out"]),
    ],
)
def test_what_cannot_be_planned(changes: dict[str, Any], parts: list[str]) -> None:
    message = refusal(entry(**changes))
    for part in parts:
        assert part in message


def test_the_entry_that_is_wrong_is_named() -> None:
    assert "suite mine, cases[1], cpu.fma:" in refusal(entry(), entry(params={"threads": 0}))
    assert refusal(entry(params={"isa": "avx3"})).startswith("suite mine, cases[0], cpu.fma: isa")
    suite = ad_hoc_suite("cpu.fma", {"threads": 0})
    with pytest.raises(UsageError, match=r"^cpu\.fma: threads 0"):
        make_plan(suite, {"cpu": TABLE}, host())


def test_too_many_cases_are_counted_before_they_are_made() -> None:
    values = [i / 1000 + 0.1 for i in range(1000)]
    grid = {"duration_s": values, "sample_interval_s": values, "warmup_s": values}
    message = refusal(entry(grid=grid))
    assert "1000000000 cases" in message and "10000 are allowed" in message


def test_unknown_subsystems_are_found_before_programs_are_looked_for() -> None:
    assert subsystems_of(Suite(name="mine", cases=(entry(), entry()))) == ["cpu"]
    with pytest.raises(UsageError, match="no subsystem 'memory'"):
        subsystems_of(Suite(name="mine", cases=(entry(), entry(workload="memory.triad"))))


def test_a_published_table_names_a_subsystem_that_is_installed() -> None:
    suite = load_suite(find_suite("cs553/openstack-haswell"))
    assert suite.published is not None
    (first, *_) = suite.published.tables
    strange = first.model_copy(update={"subsystem": "memory"})
    published = suite.published.model_copy(update={"tables": (strange,)})
    message = f"published table {first.name}: there is no subsystem 'memory'; "
    with pytest.raises(UsageError, match=message):
        subsystems_of(suite.model_copy(update={"published": published}))


def test_a_case_changes_only_the_repeats_it_names() -> None:
    changed = entry(params={"threads": 1}, repeats=RepeatsChange(max_trials=9))
    first, second = plan(entry(), changed, repeats=QUICK).cases
    assert first.repeats == QUICK.model_copy(update={"target_half_width": 0.02})
    assert second.repeats == first.repeats.model_copy(update={"max_trials": 9})


def test_trials_aim_at_what_the_suite_says_or_the_kind_of_resource() -> None:
    (case,) = plan(entry(), repeats=Repeats(target_half_width=0.3)).cases
    assert case.repeats.target == 0.3
    targets = {one.name: one.target_half_width for one in subsystems().values()}
    assert targets == {"cpu": 0.02, "gpu": 0.02, "mem": 0.05, "disk": 0.10, "net": 0.10}


# ---- identity ----


def test_the_hash_depends_on_values_alone() -> None:
    one = case_hash("cpu.fma", {"threads": 2, "duration_s": 1.0})
    assert one == case_hash("cpu.fma", {"duration_s": 1, "threads": 2})
    assert one != case_hash("cpu.fma", {"threads": 2, "duration_s": 1.5})
    assert one != case_hash("cpu.clock", {"threads": 2, "duration_s": 1})


def test_the_hash_never_changes_between_versions() -> None:
    assert case_hash("cpu.fma", {"dtype": "fp64", "threads": 2}) == "a09ed9787c04"


def test_a_default_written_out_is_the_same_case() -> None:
    (one,) = plan(entry()).cases
    (other,) = plan(entry(params={"dtype": "fp64", "duration_s": 1, "threads": "all"})).cases
    assert one.case == other.case


# ---- estimate ----

QUICK = Repeats(min_trials=3, max_trials=5, max_time_s=30.0)


def test_the_estimate_is_trials_times_their_time_and_the_gates() -> None:
    planned = plan(
        entry(params={"duration_s": 0.5}, grid={"dtype": ["fp64", "fp32"]}),
        repeats=QUICK,
        idle=IdleRules(policy="flag", timeout_s=10.0, per="suite"),
    )
    estimate = planned.estimate()
    # 0.5 s timed, 0.1 s warm-up, 0.1 s around it
    assert estimate.low_s == pytest.approx(2 * 3 * 0.7 + 1)
    assert estimate.high_s == pytest.approx(2 * 5 * 0.7 + 10)
    assert (estimate.trials_low, estimate.trials_high) == (6, 10)
    assert estimate.complete


@pytest.mark.parametrize(("per", "gates"), [("suite", 1), ("block", 2), ("case", 3)])
def test_every_gate_takes_its_time(per: Any, gates: int) -> None:
    planned = plan(
        entry(grid={"dtype": ["fp64", "fp32"]}),
        entry(params={"threads": 1}),
        repeats=QUICK,
        idle=IdleRules(policy="fail", timeout_s=20.0, per=per),
    )
    forced = plan(*planned.suite.cases, repeats=QUICK, idle=IdleRules(policy="force"))
    difference = planned.estimate().high_s - forced.estimate().high_s
    assert difference == pytest.approx(gates * 20)


def test_max_time_bounds_the_upper_estimate_and_never_the_least_trials() -> None:
    forced = IdleRules(policy="force")
    short = Repeats(min_trials=2, max_trials=100, max_time_s=10.0)
    assert plan(entry(), repeats=short, idle=forced).estimate().high_s == pytest.approx(10)
    shorter = Repeats(min_trials=2, max_trials=100, max_time_s=1.0)
    assert plan(entry(), repeats=shorter, idle=forced).estimate().high_s == pytest.approx(2.4)


def test_an_estimate_with_fixed_work_is_not_complete() -> None:
    assert not plan(entry(params={"work": 10})).estimate().complete


# ---- peers ----


def test_auto_is_every_light_peer_that_fits() -> None:
    cases = plan(entry(grid={"isa": ["scalar", "avx2"]}), peers="auto").cases
    assert [case.peers for case in cases] == [(), ("likwid-bench",)]
    # A second of ours and the one that likwid-bench sleeps.
    assert [case.peers_time_s for case in cases] == [0.0, pytest.approx(2.3)]


def test_none_is_what_a_suite_has_that_says_nothing() -> None:
    assert [case.peers for case in plan(entry()).cases] == [()]
    assert [case.peers for case in plan(entry(peers="none"), peers="auto").cases] == [()]


def test_what_an_entry_says_stands_above_what_the_suite_says() -> None:
    cases = plan(entry(peers=["likwid-bench"]), entry(params={"threads": 1})).cases
    assert [case.peers for case in cases] == [("likwid-bench",), ()]


def test_a_suites_list_need_not_fit_every_case() -> None:
    cases = plan(entry(grid={"isa": ["scalar", "avx2"]}), peers=["likwid-bench", "hpcc"]).cases
    assert [case.peers for case in cases] == [(), ("likwid-bench",)]


def test_an_entrys_list_must_fit_one_of_its_cases() -> None:
    message = refusal(entry(peers=["sysbench"]))
    assert "peer sysbench measures nothing comparable" in message and "docs/peers.md" in message


@pytest.mark.exhaustive
def test_an_entry_takes_no_longer_to_plan_among_ten_thousand() -> None:
    def planned(entries: int) -> None:
        durations = (1 + number / 1000 for number in range(entries))
        own = (entry(params={"duration_s": one}, peers=["likwid-bench"]) for one in durations)
        assert len(plan(*own).cases) == entries

    # Ten times as many entries: a hundred times the work where each looks at each.
    assert growth(planned, 1000, 10_000) < 30


def test_a_case_of_two_entries_has_the_peers_of_both() -> None:
    bare = entry(grid={"threads": [1, 2]}, label="both")
    beside = entry(params={"threads": 2}, peers=["likwid-bench"])
    (alone,) = plan(beside).cases
    for entries in ((bare, beside), (bare, beside, beside), (beside, bare)):
        cases = plan(*entries).cases
        assert {case.params["threads"]: case.peers for case in cases} == {
            1: (),
            2: ("likwid-bench",),
        }
        (with_peer,) = (case for case in cases if case.peers)
        assert with_peer.peers_time_s == pytest.approx(alone.peers_time_s)
        assert with_peer.label == ("both 2 threads" if entries[0] is bare else "2 threads")


def test_an_unknown_peer_names_the_nearest() -> None:
    message = refusal(entry(peers=["likwid"]))
    assert "'likwid'" in message and "did you mean 'likwid-bench'?" in message
    assert "perf or cyclictest" in message


def test_peers_do_not_change_what_a_case_is() -> None:
    (without,) = plan(entry()).cases
    (beside,) = plan(entry(), peers="auto").cases
    assert without.case == beside.case


def test_the_estimate_includes_the_peers() -> None:
    forced = IdleRules(policy="force")
    without = plan(entry(), repeats=QUICK, idle=forced).estimate()
    beside = plan(entry(), repeats=QUICK, idle=forced, peers="auto").estimate()
    # A peer runs after the first three trials: 1.1 s measured and warmed up, 1.2 s beyond.
    assert beside.low_s - without.low_s == pytest.approx(3 * 2.3)
    assert beside.high_s - without.high_s == pytest.approx(3 * 2.3)
    assert (beside.peer_trials_low, beside.peer_trials_high) == (3, 3)
    assert (beside.trials_low, without.peer_trials_high) == (without.trials_low, 0)


@pytest.mark.parametrize(
    ("least", "most", "low", "high"), [(1, 1, 1, 1), (1, 5, 1, 3), (3, 5, 3, 3), (5, 15, 5, 5)]
)
def test_how_many_trials_a_peer_has(least: int, most: int, low: int, high: int) -> None:
    repeats = Repeats(min_trials=least, max_trials=most)
    estimate = plan(entry(), repeats=repeats, peers="auto").estimate()
    assert (estimate.peer_trials_low, estimate.peer_trials_high) == (low, high)
