"""The parameters, from the tables of the programs in this checkout."""

from functools import cache

from grafana.charts import Axis
from grafana.looks import BANDWIDTH, BYTES, NUMBER
from hostbench.model.table import Param, Table, Workload
from hostbench.plan.label import param_title
from hostbench.programs.program import load_program

UNITS = {None: NUMBER, "byte": BYTES, "byte/s": BANDWIDTH}
LOG_BASE = 2


@cache
def _table(subsystem: str) -> Table:
    return load_program(subsystem).table


def _workload(full_name: str) -> Workload:
    subsystem, _, name = full_name.partition(".")
    workload = _table(subsystem).workload(name)
    if workload is None:
        raise ValueError(f"there is no workload {full_name}")
    return workload


def _param(workload: str, name: str) -> Param:
    found = _workload(workload).param(name)
    if found is None:
        raise ValueError(f"{workload} has no parameter {name}")
    return found


def title(workload: str, name: str) -> str:
    """Return the name of a parameter on an axis or in a heading, such as `number of threads`."""
    return param_title(_param(workload, name))


def axis(workload: str, name: str) -> Axis:
    """Return the logarithmic axis of a parameter that is a number."""
    param = _param(workload, name)
    if "axis" not in param.roles or not param.is_number:
        raise ValueError(f"{workload}: {name} is no axis of numbers")
    return Axis(param.name, param_title(param), UNITS[param.unit], LOG_BASE, "tag" in param.roles)


def other_fields(workload: str, drawn: str) -> tuple[str, ...]:
    """Return the parameters that are fields of all points of a workload, except the one on the
    axis. A parameter without a default is a field of some points only, and left out."""
    params = _workload(workload).params
    fields = (one.name for one in params if _is_field(one) and one.default is not None)
    return tuple(name for name in fields if name != drawn)


def tags(*workloads: str) -> tuple[str, ...]:
    """Return the tags that distinguish series of these workloads, in the order of their tables."""
    params = (param for name in workloads for param in _workload(name).params)
    return tuple(dict.fromkeys(param.name for param in params if "tag" in param.roles))


def _is_field(param: Param) -> bool:
    return "axis" in param.roles and "tag" not in param.roles and param.is_number
