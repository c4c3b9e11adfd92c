"""Result documents of several hosts of one model, whose figures are so much faster or slower."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hostbench.model.result import CaseResult, Figure, Interval, ResultDocument
from hostbench.results.sealed import sealed
from tests.unit.baseline_hosts import machine_of
from tests.unit.report_documents import full_run


@functools.cache
def whole() -> ResultDocument:
    return full_run(trials=5, workloads=("fma", "add_sub"))


def of_host(
    number: int, factor: float = 1.0, only: str | None = None, job: int = 0, **host: Any
) -> ResultDocument:
    """`only`: no other workload is so much faster or slower. `host`: what of it is different."""
    document = whole()
    known = {"machine": machine_of(number), "hostname": f"node{number}"}
    return sealed(
        document.model_copy(
            update={
                "digest": None,
                "host": document.host.model_copy(update=known | host),
                "job": replace(
                    document.job,
                    id=f"20261120T{number:06}Z-full-{job:04x}",
                    created_unix_s=document.job.created_unix_s + 100 * job,
                    hostname=f"node{number}",
                ),
                "cases": tuple(
                    scaled_case(case, factor if only in (None, case.workload) else 1.0)
                    for case in document.cases
                ),
            }
        )
    )


def of_hosts(factors: Sequence[float]) -> list[ResultDocument]:
    return [of_host(number, factor) for number, factor in enumerate(factors)]


def scaled_case(case: CaseResult, factor: float) -> CaseResult:
    """A case with its figures and their intervals multiplied."""
    metric = case.metrics.get(case.primary)
    if metric is None or factor == 1.0:
        return case
    statistics = metric.statistics.model_copy(update={"median": metric.statistics.median * factor})
    share = None if metric.efficiency is None else metric.efficiency * factor
    changed = metric.model_copy(update={"statistics": statistics, "efficiency": share})

    def scaled(figure: Figure | None) -> Figure | None:
        if figure is None:
            return None
        interval = figure.interval and Interval(
            low=figure.interval.low * factor, high=figure.interval.high * factor
        )
        return figure.model_copy(update={"value": figure.value * factor, "interval": interval})

    return case.model_copy(
        update={
            "metrics": {**case.metrics, case.primary: changed},
            "figure": scaled(case.figure),
            "undisturbed": scaled(case.undisturbed),
            "delivered": scaled(case.delivered),
        }
    )
