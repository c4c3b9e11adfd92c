"""CPU: rates by type, instruction set and threads, beside limit and peer, and their history."""

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    dashboard,
    stat,
    timeseries,
)
from grafana_foundation_sdk.builders import (
    common as common_builders,
)
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.charts import (
    GROUPED,
    beside,
    highest,
    matrix,
    narrow_history,
    peer_history,
    peer_ratios,
    row_history,
    share_history,
    spread_history,
    workload_shares,
)
from grafana.influxql import (
    PRIMARY,
    SOUND,
    equals,
    latest,
    present,
    results,
    series,
)
from grafana.looks import (
    CLOCK,
    RATE,
    api_variable,
    board,
    change_marks,
    result_variables,
)
from grafana.overview import tile
from grafana.parameters import title
from grafana.tables import results_table

RATES = (
    f"{PRIMARY} AND {SOUND} AND {equals('subsystem', 'cpu')} "
    f"AND {equals('metric', 'operations_per_second')}"
)
CLOCKS = equals("metric", "clock_hertz")
NO_RATES = "No rates in the chosen time."


def cpu() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-cpu",
        "hostbench: CPU",
        "What the CPUs do by type, instruction set and threads, compared with limit and peer.",
        "now-30d",
    )
    # The clock has charts of its own: it is not a rate.
    for variable in result_variables(RATES, "cpu[.].*"):
        found = found.with_variable(variable)
    return (
        found.annotations(change_marks(equals("subsystem", "cpu")))
        .with_variable(api_variable())
        .with_panel(_highest())
        .with_panel(_of_limit())
        .with_panel(_clock())
        .with_panel(peer_ratios().grid_pos(GridPos(x=18, y=4, w=6, h=5)))
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("Rates by type, instruction set and threads"))
        .with_panel(_matrix("isa"))
        .with_panel(_matrix("threads"))
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(share_history())
        .with_panel(peer_history())
        .with_panel(_clock_history())
        .with_panel(spread_history())
        .with_row(dashboard.Row("$workload").repeat("workload"))
        .with_panel(
            beside(
                "$workload: ours, the limit, the peer",
                RATE,
                RATES,
                "theoretical limit at the clock it had",
            )
        )
        .with_panel(row_history("workload", RATE, RATES))
    )


def _highest() -> bargauge.Panel:
    return highest(
        "Highest rate by type",
        "The highest of the latest rates of each data type, over all chosen workloads, "
        "instruction sets and numbers of threads.",
        RATE,
        f"{RATES} AND {present('dtype')}",
        NO_RATES,
        tag="dtype",
    )


def _of_limit() -> bargauge.Panel:
    return workload_shares(
        "The lowest of the latest results of all cases of a workload. Limit: clock measured in "
        "the same trial x operations a cycle of the micro-architecture x cores.",
    )


def _clock() -> stat.Panel:
    inner = latest('"value"', ("workload",), CLOCKS)
    return (
        tile(
            "Core clock",
            "The highest and the lowest core clock of the latest results, measured under the "
            "kernels themselves.",
            6,
        )
        .unit(CLOCK)
        .decimals(2)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(f'SELECT max("value") FROM ({inner})', "highest"))
        .with_target(series(f'SELECT min("value") FROM ({inner})', "lowest", "B"))
    )


def _matrix(tag: str) -> barchart.Panel:
    """Return the highest rate by one parameter, with a bar for each type."""
    name = title("cpu.fma", tag)
    typed = f"{RATES} AND {present('dtype')} AND {present(tag)}"
    return matrix(
        f"Highest rate by {name} and type",
        f"The highest of the latest rates for each {name}, one bar a data type. The scale is "
        "logarithmic: AMX on bf16 does a hundred times what scalar fp64 does.",
        RATE,
        tag,
        "dtype",
        latest('"value"', ("dtype", tag), typed),
    ).scale_distribution(
        common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10)
    )


def _clock_history() -> timeseries.Panel:
    return narrow_history(
        "Core clock",
        "The core clock while each kernel runs: vector instructions may lower it.",
        CLOCK,
        f'SELECT "value" {results(CLOCKS)} {GROUPED}',
    )
