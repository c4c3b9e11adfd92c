"""The suites that come with hostbench fit the tables of the programs, with and without GPUs."""

import functools
import itertools
import os
from typing import Any
from unittest import mock

import pytest

from hostbench.host.inventory import inventory
from hostbench.model.body import ErrorsSoFar
from hostbench.model.host import Gpu, Gpus
from hostbench.model.jobs import JobSpec
from hostbench.model.suite import Suite
from hostbench.model.table import Table
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.suite import built_in_suites, load_known_suite
from hostbench.plan.workloads import subsystems_of
from hostbench.programs.program import load_program
from services.gpu.tests import cuda_stub
from tests.each import each

CARDS = tuple(Gpu(index=index, backend="cuda", name="a card") for index in (0, 1))
# What quick says of itself: about two minutes for each GPU, by what the program says of its set-up.
QUICK_S_A_GPU = 120.0
MAPS_S = 300.0


@functools.cache
def table(subsystem: str, cards: bool) -> Table:
    """As it is on this host, or on one with two cards."""
    if subsystem != "gpu" or not cards:
        return load_program(subsystem).table
    with mock.patch.dict(os.environ, cuda_stub.environment(cards=len(CARDS))):
        return load_program(subsystem).table


def planned(suite: Suite, devices: tuple[Gpu, ...]) -> Plan:
    host = inventory().model_copy(update={"gpus": Gpus(devices=devices)})
    tables = {each: table(each, bool(devices)) for each in subsystems_of(suite)}
    return make_plan(suite, tables, host, far_host=True)


def gpu_part(name: str) -> Suite:
    suite = load_known_suite(built_in_suites()[name])
    changes: dict[str, Any] = {
        "cases": tuple(case for case in suite.cases if case.workload.startswith("gpu.")),
        "idle": suite.idle.model_copy(update={"policy": "force"}),
    }
    return suite.model_copy(update=changes)


@each("name", sorted(built_in_suites()))
def test_a_suite_is_the_same_behind_json(name: str) -> None:
    """As the orchestrator's queue keeps it, and as the body of a request."""
    suite = load_known_suite(built_in_suites()[name])
    kept = suite.model_dump_json(exclude_defaults=True)
    assert Suite.model_validate_json(kept) == suite
    job = JobSpec.model_validate_json(f'{{"suite": {kept}}}', context=ErrorsSoFar())
    assert job.suite == suite


@pytest.mark.parametrize("name", sorted(built_in_suites()))
@pytest.mark.parametrize("devices", [(), CARDS])
@pytest.mark.sampled(4)
def test_a_suite_fits(name: str, devices: tuple[Gpu, ...]) -> None:
    suite = load_known_suite(built_in_suites()[name])
    for scale in suite.scales or [None]:
        plan = planned(suite.scaled(scale), devices)
        assert plan.cases
        assert plan.suite.scale == scale


@pytest.mark.parametrize("name", ["quick", "full", "burn-in"])
def test_without_a_gpu_each_entry_is_a_case_and_takes_no_time(name: str) -> None:
    suite = gpu_part(name)
    plan = planned(suite, ())
    workloads = [case.workload for case in suite.cases]
    assert {case.workload for case in plan.cases} == set(workloads)
    assert len(plan.cases) <= len(workloads)
    assert (plan.estimate().low_s, plan.estimate().high_s) == (0.0, 0.0)


def test_full_has_every_word_for_every_card() -> None:
    cases = planned(gpu_part("full"), CARDS).cases
    for name in ("fma", "tensor", "gemm"):
        workload = table("gpu", True).workload(name)
        assert workload is not None
        dtype = workload.param("dtype")
        assert dtype is not None
        every = set(itertools.product(("0", "1"), dtype.words))
        found = {
            (c.params["device"], c.params["dtype"]) for c in cases if c.workload == f"gpu.{name}"
        }
        assert found == every, name


def test_quick_takes_two_minutes_for_each_gpu() -> None:
    suite = gpu_part("quick")
    for cards in (CARDS[:1], CARDS):
        plan = planned(suite, cards)
        assert {case.params["device"] for case in plan.cases} == {str(one.index) for one in cards}
        assert plan.estimate().high_s < QUICK_S_A_GPU * len(cards)


def test_maps_takes_less_than_five_minutes() -> None:
    """With the fewest trials: how many more a noisy host needs is not the suite's."""
    suite = load_known_suite(built_in_suites()["maps"])
    assert planned(suite, ()).estimate().low_s < MAPS_S


@pytest.mark.parametrize(
    ("scale", "hours", "of_a_gpu"),
    [("minutes", 1 / 6, 1 / 12), ("hours", 8.0, 3.3), ("days", 72.0, 29.0)],
)
def test_burn_in_takes_the_time_of_its_scale(scale: str, hours: float, of_a_gpu: float) -> None:
    suite = load_known_suite(built_in_suites()["burn-in"]).scaled(scale)
    alone_s = planned(suite, ()).estimate().low_s
    assert alone_s == pytest.approx(hours * 3600, rel=0.1)
    of_both_s = planned(suite, CARDS).estimate().low_s - alone_s
    assert of_both_s == pytest.approx(len(CARDS) * of_a_gpu * 3600, rel=0.1)
