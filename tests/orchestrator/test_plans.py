"""A suite is planned once for a host, and again only where what plans depend on differs."""

from typing import Literal

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.events import ParamValue
from hostbench.model.host import HostInventory
from hostbench.model.suite import Suite, SuiteCase
from hostbench.model.table import Table
from orchestrator.queue.plans import PlannedHost, Plans
from tests.unit.records import TABLE, host

THREADS: dict[str, Literal["all"] | list[ParamValue]] = {"threads": [1, "all"]}


def suite(name: str = "mine", **params: ParamValue) -> Suite:
    return Suite(name=name, cases=(SuiteCase(workload="cpu.fma", params=params, grid=THREADS),))


def planned_host(inventory: HostInventory | None = None, table: Table = TABLE) -> PlannedHost:
    return PlannedHost({"cpu": table}, inventory or host())


def test_the_plan_of_acceptance_is_the_plan_of_the_start() -> None:
    """The start asks the services anew: equal answers are other objects, and a host's kernel or
    free memory is nothing that a plan is made from."""
    plans = Plans()
    accepted = plans.plan(suite(duration_s=0.5), planned_host(), far_host=False)
    assert [case.params["threads"] for case in accepted.cases] == [1, 2]
    again = Suite.model_validate_json(suite(duration_s=0.5).model_dump_json(exclude_defaults=True))
    answered = planned_host(
        host(kernel="6.13.0", memory_bytes=1 << 31),
        Table.model_validate_json(TABLE.model_dump_json()),
    )
    assert plans.plan(again, answered, far_host=False) is accepted


def test_what_a_plan_depends_on_is_planned_again() -> None:
    plans = Plans()
    first = plans.plan(suite(), planned_host(), far_host=False)
    (fma,) = TABLE.workloads
    dtype = fma.params[0].model_copy(update={"default": "fp32"})
    rebuilt = fma.model_copy(update={"params": (dtype, *fma.params[1:])})
    other_table = TABLE.model_copy(update={"workloads": (rebuilt,)})
    fewer = plans.plan(suite(), planned_host(host(allowed_cpus=(1,))), far_host=False)
    assert [case.params["threads"] for case in fewer.cases] == [1]
    other = plans.plan(suite(), planned_host(table=other_table), far_host=False)
    assert other.cases[0].params["dtype"] == "fp32" != first.cases[0].params["dtype"]
    assert plans.plan(suite(duration_s=2), planned_host(), far_host=False) != first
    assert plans.plan(suite(), planned_host(), far_host=True) is not first
    assert plans.plan(suite(), planned_host(), far_host=False) is first


def test_a_suite_that_cannot_be_planned_is_refused_each_time() -> None:
    plans = Plans()
    for _ in range(2):
        with pytest.raises(UsageError, match="duration_s"):
            plans.plan(suite(duration_s=-1.0), planned_host(), far_host=False)


def test_old_plans_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.queue.plans.CASES_MOST", 4)
    plans = Plans()
    first, second, _ = (
        plans.plan(suite(name), planned_host(), far_host=False) for name in ("a", "b", "c")
    )
    assert plans.plan(suite("b"), planned_host(), far_host=False) is second
    assert plans.plan(suite("a"), planned_host(), far_host=False) is not first
