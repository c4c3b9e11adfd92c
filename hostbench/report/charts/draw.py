"""The drawing of a chart of any kind."""

from hostbench.report.charts.bars import bar_chart
from hostbench.report.charts.curves import curve_chart
from hostbench.report.charts.forest import forest_chart
from hostbench.report.charts.history import history_chart
from hostbench.report.charts.hosts import hosts_chart
from hostbench.report.charts.matrix import matrix_chart
from hostbench.report.charts.series import time_chart
from hostbench.report.charts.spread import spread_chart
from hostbench.report.content import (
    BarChart,
    CurveChart,
    Drawing,
    ForestChart,
    HistoryChart,
    HostsChart,
    MatrixChart,
    SpreadChart,
)


def draw(drawing: Drawing, title: str, job_address: str = "") -> tuple[str, str]:
    """Return two SVG elements: for wide and for narrow windows. `job_address`: see add_blocks of
    html.py."""
    if isinstance(drawing, BarChart):
        return bar_chart(drawing, title)
    if isinstance(drawing, SpreadChart):
        return spread_chart(drawing, title)
    if isinstance(drawing, CurveChart):
        return curve_chart(drawing, title)
    if isinstance(drawing, ForestChart):
        return forest_chart(drawing, title)
    if isinstance(drawing, HistoryChart):
        return history_chart(drawing, title, job_address)
    if isinstance(drawing, HostsChart):
        return hosts_chart(drawing, title)
    if isinstance(drawing, MatrixChart):
        return matrix_chart(drawing, title)
    return time_chart(drawing, title)
