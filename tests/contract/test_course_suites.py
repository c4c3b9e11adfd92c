"""Every row of a published table finds the cases that measure it, at both scales."""

import functools
from collections.abc import Mapping, Sequence

import pytest

from hostbench.host.inventory import inventory
from hostbench.model.host import HostInventory
from hostbench.model.published import Match, Published
from hostbench.model.result import PlannedCase
from hostbench.model.table import Table
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.suite import built_in_suites, load_known_suite
from hostbench.plan.workloads import subsystems_of
from hostbench.programs.program import load_program

NAMES = sorted(name for name in built_in_suites() if name.startswith("cs553/"))
QUICK_S_TOGETHER = 45 * 60.0


@functools.cache
def table(subsystem: str) -> Table:
    return load_program(subsystem).table


@functools.cache
def host() -> HostInventory:
    return inventory()


@functools.cache
def planned(name: str, scale: str, far_host: bool) -> Plan:
    suite = load_known_suite(built_in_suites()[name]).scaled(scale)
    tables = {each: table(each) for each in subsystems_of(suite)}
    return make_plan(suite, tables, host(), far_host=far_host)


def published(plan: Plan) -> Published:
    assert plan.suite.published is not None
    return plan.suite.published


def matching(match: Match, key: Mapping[str, object], plan: Plan) -> list[PlannedCase]:
    wanted = {**match.params, **key}
    return [
        case
        for case in plan.cases
        if case.workload == match.workload
        and all(name in case.params and case.params[name] == wanted[name] for name in wanted)
    ]


def matches(plan: Plan) -> Sequence[tuple[str, Match, Mapping[str, object]]]:
    """Everything that a table wants measured: where it stands, the match, the key of the row."""
    found: list[tuple[str, Match, Mapping[str, object]]] = []
    for printed in published(plan).tables:
        for operation, *cells in printed.rows:
            key = dict(zip(printed.key, cells, strict=False))
            series = printed.series[str(operation)]
            where = f"{printed.name} {operation} {key}"
            found.append((f"{where} ours", series.ours, key))
            if series.naive:
                found.append((f"{where} naive", series.naive, key))
        found += [
            (f"{printed.name} {tool.title}", tool.ours, {}) for tool in printed.trusted if tool.ours
        ]
    return found


@pytest.mark.parametrize("far_host", [False, True])
@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_finds_its_case(name: str, scale: str, far_host: bool) -> None:
    plan = planned(name, scale, far_host)
    wrong = []
    for where, match, key in matches(plan):
        found = matching(match, key, plan)
        if len(found) != 1:
            wrong.append(f"{where}: {len(found)} cases")
        for case in found:
            wants_another = case.params.get("target") == "far_host"
            if bool(case.skip) != (wants_another and not far_host):
                wrong.append(f"{where}: skip is {case.skip!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_the_naive_way_is_naive_and_ours_is_not(name: str) -> None:
    plan = planned(name, "quick", True)
    for where, match, key in matches(plan):
        for case in matching(match, key, plan):
            assert case.naive == where.endswith(" naive"), where


@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_measured_that_no_table_shows(name: str, scale: str) -> None:
    plan = planned(name, scale, True)
    shown = {case.case for _, match, key in matches(plan) for case in matching(match, key, plan)}
    # One case a table may be there for the tool beside it.
    rest = [case.title for case in plan.cases if case.case not in shown and not case.peers]
    assert not rest


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_a_metric_of_its_workload(name: str) -> None:
    plan = planned(name, "quick", True)
    for where, match, _ in matches(plan):
        subsystem, _, workload = match.workload.partition(".")
        row = table(subsystem).workload(workload)
        assert row is not None, where
        assert match.metric is None or match.metric in {one.name for one in row.metrics}, where


def test_all_at_quick_take_less_than_45_minutes() -> None:
    plans = [planned(name, "quick", False) for name in NAMES]
    assert len(plans) == 5
    assert sum(plan.estimate().low_s for plan in plans) < QUICK_S_TOGETHER
