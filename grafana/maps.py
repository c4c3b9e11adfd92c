"""Maps: what the memory, the cores and the kernel of a host look like to its programs."""

from collections.abc import Mapping
from dataclasses import replace

from grafana_foundation_sdk.builders import barchart, dashboard, table, timeseries, xychart
from grafana_foundation_sdk.models.dashboard import VariableSort

from grafana.charts import GROUPED, Axis, curves, history, matrix
from grafana.influxql import (
    PRIMARY,
    SOUND,
    TABLE,
    Query,
    differs,
    equals,
    latest,
    matches,
    one_of,
    results,
    series,
)
from grafana.looks import (
    BANDWIDTH,
    CLOCK,
    MOMENT,
    NUMBER,
    PLAIN,
    RATE,
    RATIO,
    SECONDS,
    SHARE,
    api_variable,
    board,
    bottom_legend,
    organised,
    prop,
    result_variables,
    transformation,
    variable,
)
from grafana.parameters import axis, tags, title
from grafana.tables import (
    CONSOLE_LINK,
    REPORT_LINK,
    coloured_text,
    filtered,
    number,
    plain_table,
    results_table,
    sorted_by,
    width,
)
from services.mem.params import CHAINS, LINE_BYTES, PAGES, PATTERN, RANDOM, SIZE, STRIDE, THREADS

KERNELS = ("mem.read", "mem.write", "mem.copy", "mem.triad")
CHASE, CODE_CHASE = "mem.pointer_chase", "mem.code_chase"
NUMA, ROOFLINE = "mem.numa", "cpu.roofline"
CORE_TO_CORE, FIXED_WORK = "cpu.core_to_core", "cpu.fixed_work"
CLOCK_LADDER, SMT_YIELD = "cpu.clock_ladder", "cpu.smt_yield"
SYSCALL, PAGE_FAULT, PROCESS_START = "cpu.syscall", "cpu.page_fault", "cpu.process_start"
WAKEUP, CONTEXT_SWITCH = "cpu.wakeup", "cpu.context_switch"
WORKLOADS = (
    *(
        *KERNELS,
        CHASE,
        CODE_CHASE,
        NUMA,
        CORE_TO_CORE,
        CLOCK_LADDER,
        SMT_YIELD,
        SYSCALL,
        CONTEXT_SWITCH,
    ),
    *(WAKEUP, PAGE_FAULT, PROCESS_START, FIXED_WORK, ROOFLINE),
)
ALTERNATIVES = "({})".format("|".join(name.replace(".", "[.]") for name in WORKLOADS))
MAPPED = matches("workload", f"^{ALTERNATIVES}$")
FIGURES = f"{PRIMARY} AND {MAPPED}"
CHOSEN_FIGURES = f"{FIGURES} AND {one_of('job')}"
ALONE = equals(THREADS, "1")
LADDER = (
    f"{CHOSEN_FIGURES} AND {SOUND} AND {equals('metric', 'bytes_per_second')} AND {ALONE} "
    f"AND {differs(PATTERN, RANDOM)}"
)
CHASES = f"{CHOSEN_FIGURES} AND {equals('workload', CHASE)} AND {ALONE}"
EACH_LINE, ONE_CHAIN = equals(STRIDE, str(LINE_BYTES)), equals(CHAINS, "1")
TIME_AXIS = Axis("value", "access time", SECONDS, 10)
# InfluxDB's names of the columns, and the names that people read.
JOB_COLUMNS = {
    "until_ms (max)": "ended",
    "host (last)": "host",
    "suite (last)": "suite",
    "job": "job",
    "n (count)": "cases",
}
ROOF_COLUMNS = {
    "host": "host",
    "dtype": "type",
    "isa": "instruction set",
    THREADS: "threads",
    "memory": "memory",
    "core": "core",
    "limit": "limit of FMA units",
    "ridge": "ridge, op/byte",
}
NAMES_OF_NODES = {
    "access_time_s_nearest": "nearest",
    "access_time_s": "median",
    "access_time_s_farthest": "farthest",
}
NAMES_OF_CLOCKS = {
    "clock_hertz_alone": "one CPU at work",
    "clock_hertz": "all CPUs",
    "clock_hertz_lowest": "the lowest of all numbers",
}
NAMES_OF_YIELDS = {"yield_ratio": "second thread of the core", "cores_ratio": "a second core"}
NAMES_OF_PAIRS = {
    "hand_over_time_s_nearest": "nearest",
    "hand_over_time_s": "median",
    "hand_over_time_s_farthest": "farthest",
}
NAMES_OF_LOSSES = {"lost_ratio": "all CPUs", "lost_ratio_most": "the worst CPU"}
IN_REPORT = "The job's page in the console and its report show"
SEVERAL_HOSTS = "Of several hosts, the longest: choose one."


def maps() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-maps",
        "hostbench: maps",
        "How memory, cores and kernel of a host look to its programs: figures of the suite maps, "
        "or of its workloads in other suites.",
        "now-30d",
    )
    for one in (*result_variables(FIGURES, ALTERNATIVES), _job()):
        found = found.with_variable(one)
    return (
        found.with_variable(api_variable())
        .with_panel(_jobs())
        .with_row(dashboard.Row("Memory"))
        .with_panel(_ladder())
        .with_panel(_latency())
        .with_panel(_strides())
        .with_panel(_chains())
        .with_panel(_jumps())
        .with_panel(_nodes())
        .with_row(dashboard.Row("Roofline"))
        .with_panel(_roofline())
        .with_panel(_roofs())
        .with_row(dashboard.Row("Cores"))
        .with_panel(_clocks())
        .with_panel(_siblings())
        .with_panel(_pairs())
        .with_panel(_losses())
        .with_row(dashboard.Row("Kernel"))
        .with_panel(_wakeup())
        .with_panel(_context_switch())
        .with_panel(_syscall())
        .with_panel(_page_fault())
        .with_panel(_process_start())
        .with_row(dashboard.Row("All results"))
        .with_panel(results_table(14, CHOSEN_FIGURES))
    )


def _job() -> dashboard.QueryVariable:
    return variable(
        "job",
        f'SELECT distinct("job") AS "job" {results(FIGURES)}',
        "Jobs in the chosen time, the newest first. All: the latest result of every case.",
        # A job's id begins with its time, so the newest is first.
        VariableSort.ALPHABETICAL_DESC,
    )


def _jobs() -> table.Panel:
    fields: dict[str, object] = {
        "job": {"operation": "groupby", "aggregations": []},
        **{
            name: {"operation": "aggregate", "aggregations": [call]}
            for name, call in (
                *(("host", "last"), ("suite", "last")),
                *(("n", "count"), ("until_ms", "max")),
            )
        },
    }
    panel = (
        plain_table()
        .title("Jobs")
        .description(
            "The jobs of these figures. A click on one opens its page in the console or its "
            "report. They also show what no board can: which cores and NUMA nodes are near each "
            "other (matrices of pairs), the levels of the caches and their sizes, the clock by "
            "number of CPUs, and the lengths and periods of interruptions."
        )
        .height(6)
        .with_target(
            Query(
                f'SELECT "job", "n", "until_ms" {results(CHOSEN_FIGURES)} GROUP BY "host", "suite"',
                form=TABLE,
            )
        )
        .with_transformation(transformation("groupBy", fields=fields))
        .with_transformation(organised(JOB_COLUMNS))
        .override_by_name("ended", [prop("unit", MOMENT), width(150)])
        .override_by_name("host", [*filtered(), prop("custom.minWidth", 150)])
        .override_by_name("suite", [*filtered(), prop("custom.minWidth", 150)])
        .override_by_name(
            "job", [prop("links", [CONSOLE_LINK, REPORT_LINK]), prop("custom.minWidth", 260)]
        )
        .override_by_name("cases", number("none", 0, 70))
    )
    return sorted_by(panel, "ended", descending=True)


def _ladder() -> xychart.Panel:
    return curves(
        "Bandwidth of one thread over the working set",
        "What one thread reads, writes, copies and computes (STREAM's triad), over the size of all "
        "arrays together: each step down is a level of the caches that they no longer fit into. "
        "Both scales are logarithmic.",
        axis("mem.read", SIZE),
        Axis("value", "bandwidth", BANDWIDTH, 10),
        ("workload", PAGES),
        LADDER,
    )


def _latency() -> xychart.Panel:
    return curves(
        "Access time over the working set",
        "The time of an access that waits for the one before it, over the size of what is "
        "accessed, line by line and with one chain. Flat parts are levels; between the lines of "
        f"two page modes is the cost of translation. {IN_REPORT} the levels found, beside the "
        "caches that the kernel names. Both scales are logarithmic.",
        axis(CHASE, SIZE),
        TIME_AXIS,
        (PAGES,),
        f"{CHASES} AND {EACH_LINE} AND {ONE_CHAIN}",
    )


def _strides() -> xychart.Panel:
    return curves(
        "Access time over the working set, by stride",
        "The same with accesses further apart than a cache line. One access in each page of 4 KiB "
        "takes few lines but all translations: the line of small pages rises where the TLB ends. "
        "Both scales are logarithmic.",
        axis(CHASE, SIZE),
        TIME_AXIS,
        (STRIDE, PAGES),
        f"{CHASES} AND {differs(STRIDE, str(LINE_BYTES))} AND {ONE_CHAIN}",
    )


def _chains() -> xychart.Panel:
    return curves(
        "Access time over the number of chains",
        "The time of an access while several chains of accesses overlap, a line for each working "
        "set (its bytes name it), from two chains on. The line falls until the core can have no "
        "more accesses in flight. Both scales are logarithmic.",
        axis(CHASE, CHAINS),
        TIME_AXIS,
        (PAGES,),
        f"{CHASES} AND {EACH_LINE} AND {differs(CHAINS, '1')}",
        fields=(SIZE,),
    )


def _jumps() -> xychart.Panel:
    return curves(
        "Time of a jump over the size of the code",
        "The time of one jump to code on another cache line, over the size of all code. The steps "
        "are the caches of instructions and what the branch predictor remembers; between the lines "
        "of two page modes is the cost of translation. Both scales are logarithmic.",
        replace(axis(CODE_CHASE, SIZE), name="size of the code"),
        Axis("value", "time of a jump", SECONDS, 10),
        (PATTERN, STRIDE, PAGES),
        f"{CHOSEN_FIGURES} AND {equals('workload', CODE_CHASE)} AND {ALONE}",
    )


def _nodes() -> timeseries.Panel:
    return _over_time(
        "From NUMA node to NUMA node",
        "The time of an access to the memory of a NUMA node from the CPUs of a node: the nearest "
        "pair, the median of the pairs, the farthest. Empty where the host has one node. "
        f"{IN_REPORT} the matrices of all pairs, under load too.",
        SECONDS,
        NUMA,
        NAMES_OF_NODES,
    )


def _roofline() -> xychart.Panel:
    return curves(
        "Roofline",
        "Operations a second over operations a byte of memory read. The slope is the bandwidth, "
        "the flat part is what the core computes at most. The table beside it has both roofs, and "
        "the ridge where they meet. Both scales are logarithmic.",
        Axis("operations_per_byte", "operations a byte", NUMBER, 2),
        Axis("value", "rate", RATE, 10),
        tags(ROOFLINE),
        f"{CHOSEN_FIGURES} AND {equals('workload', ROOFLINE)}",
    )


def _roofs() -> table.Panel:
    points = latest(
        '"value", "operations_per_byte", "limit"',
        tags(ROOFLINE),
        f"{CHOSEN_FIGURES} AND {equals('workload', ROOFLINE)}",
    )
    roofs = (
        'SELECT "value" AS "rate", "value" / "operations_per_byte" AS "bandwidth", "limit" '
        f"FROM ({points})"
    )
    grouped = ", ".join(f'"{tag}"' for tag in ("host", *tags(ROOFLINE)))
    text = (
        'SELECT max("bandwidth") AS "memory", max("rate") AS "core", max("limit") AS "limit", '
        f'max("rate") / max("bandwidth") AS "ridge" FROM ({roofs}) GROUP BY {grouped}'
    )
    panel = (
        plain_table()
        .title("Roofs")
        .description(
            "Memory: the highest bandwidth of the sweep. Core: its highest rate; the limit of the "
            "FMA units, where it is known. Ridge: core over memory. Code with fewer operations a "
            "byte is limited by memory, code with more by the core."
        )
        .span(12)
        .height(12)
        .with_target(Query(text, form=TABLE))
        .with_transformation(organised(ROOF_COLUMNS, ("Time",)))
        .override_by_name("host", [*filtered(), prop("custom.minWidth", 105)])
        .override_by_name("instruction set", [width(115)])
        .override_by_name("type", [width(60)])
        .override_by_name("threads", [width(70)])
        .override_by_name("memory", number(BANDWIDTH, 1))
        .override_by_name("core", number(RATE, 1))
        # Without a colour, Grafana shows an empty column as JSON.
        .override_by_name("limit of FMA units", [*number(RATE, 1, 135), *coloured_text(PLAIN)])
        .override_by_name("ridge, op/byte", number(RATIO, 2, 115))
    )
    return sorted_by(panel, "host", "threads")


def _secondary(workload: str, names: Mapping[str, str]) -> str:
    """Return a condition: one of these metrics of a workload, in the chosen jobs."""
    metrics = matches("metric", "^({})$".format("|".join(names)))
    return f"{equals('workload', workload)} AND {metrics} AND {one_of('job')}"


def _metrics(
    chart: str, description: str, unit: str, workload: str, row: str, names: Mapping[str, str]
) -> barchart.Panel:
    """Return a group of bars for each value of the tag `row`, a bar for each of these metrics."""
    inner = latest('"value"', (row, "metric"), _secondary(workload, names))
    panel = matrix(chart, description, unit, row, "metric", inner).axis_soft_min(0)
    for metric, name in names.items():
        panel = panel.override_by_name(metric, [prop("displayName", name)])
    return panel


def _clocks() -> barchart.Panel:
    return _metrics(
        f"Clock by {title(CLOCK_LADDER, 'isa')} and CPUs at work",
        "The clock of one core while it works alone and while all CPUs work, and the lowest that "
        "any number of them leaves. A lower bar of wider vectors is the CPU's licence. "
        f"{IN_REPORT} each number of CPUs.",
        CLOCK,
        CLOCK_LADDER,
        "isa",
        NAMES_OF_CLOCKS,
    )


def _siblings() -> barchart.Panel:
    return _metrics(
        "Two threads over one",
        "Work of two threads on one core over that of one alone, by what they run; and on two "
        "cores, for comparison: near 2. Empty where the host shows no two threads of one core.",
        RATIO,
        SMT_YIELD,
        "kernel",
        NAMES_OF_YIELDS,
    )


def _over_time(
    chart: str, description: str, unit: str, workload: str, names: Mapping[str, str]
) -> timeseries.Panel:
    """Return a line for each host and each of these metrics, in the order of their names."""
    (first, name), *more = names.items()

    def values(metric: str) -> str:
        condition = (
            f"{equals('workload', workload)} AND {equals('metric', metric)} AND {one_of('job')}"
        )
        return f'SELECT "value" {results(condition)} {GROUPED}'

    alias = "$tag_host $tag_label"
    panel = history(chart, description, unit, values(first), f"{alias}: {name}")
    for ref, (metric, name) in zip("BC", more, strict=False):
        panel = panel.with_target(series(values(metric), f"{alias}: {name}", ref))
    return panel.span(12).height(10).legend(bottom_legend()).axis_soft_min(0)


def _pairs() -> timeseries.Panel:
    return _over_time(
        "From core to core",
        "The time in which a cache line goes from one core to another and back, halved: of the "
        f"nearest pair of CPUs, at the median of the pairs, of the farthest. {IN_REPORT} the "
        "matrix of all pairs.",
        SECONDS,
        CORE_TO_CORE,
        NAMES_OF_PAIRS,
    )


def _losses() -> timeseries.Panel:
    return _over_time(
        "Time lost to others",
        "Share of the time that interruptions took of work of a fixed size: of all CPUs, and of "
        f"the one that lost most. {IN_REPORT} how long they are and how regular.",
        SHARE,
        FIXED_WORK,
        NAMES_OF_LOSSES,
    )


def _cost(
    chart: str, description: str, workload: str, row: str, column: str = "host"
) -> barchart.Panel:
    """Return the latest times of a workload: a group of bars for each value of the tag `row`."""
    grouped = tuple(tag for tag in (row, column) if tag != "host")
    condition = f"{CHOSEN_FIGURES} AND {equals('workload', workload)}"
    inner = latest('"value"', grouped, condition)
    return matrix(chart, description, SECONDS, row, column, inner).span(8).axis_soft_min(0)


def _wakeup() -> barchart.Panel:
    return _cost(
        "Wakeup",
        "The time until a sleeping thread that another wakes is at work, by what it sleeps on and "
        f"where. {SEVERAL_HOSTS}",
        WAKEUP,
        "by",
        "on",
    ).span(12)


def _context_switch() -> barchart.Panel:
    return _cost(
        "Context switch",
        "The time of a hand-over between two sides on one CPU, half of a round trip, by what they "
        f"hand over with. {SEVERAL_HOSTS}",
        CONTEXT_SWITCH,
        "by",
        "between",
    ).span(12)


def _syscall() -> barchart.Panel:
    return _cost(
        "System call",
        "The time of a call, of open_close of both. With several numbers of threads, the longest.",
        SYSCALL,
        "call",
    )


def _page_fault() -> barchart.Panel:
    return _cost(
        "Page fault",
        "The time of the first write to a page, by page mode: a huge page is filled with zeros of "
        "2 MiB.",
        PAGE_FAULT,
        PAGES,
    )


def _process_start() -> barchart.Panel:
    return _cost(
        "Start of a process",
        "The time from the call of fork until the end of the new process is known, without and "
        "with exec.",
        PROCESS_START,
        "how",
    )
