"""The figures that a course suite calls published add up, or a remark says where they do not."""

import re
import statistics
from collections.abc import Iterator, Sequence

import pytest

from hostbench.model.published import PublishedTable
from hostbench.model.suite import Suite
from hostbench.plan.suite import built_in_suites, load_known_suite

FOLDER = "cs553/"
NAMES = (
    "chameleon-centos7",
    "cluster-node",
    "ec2-t2-micro",
    "hyperion-e5-2670v3",
    "openstack-haswell",
)
# The reports round, and cut off digits: what is further apart is a slip of theirs or of ours.
MEAN_TOLERANCE = 0.005
DEVIATION_TOLERANCE = 0.05
EFFICIENCY_TOLERANCE = 0.01


def suite(name: str) -> Suite:
    return load_known_suite(built_in_suites()[FOLDER + name])


def tables() -> Iterator[tuple[str, PublishedTable]]:
    for name in NAMES:
        published = suite(name).published
        assert published is not None, name
        for table in published.tables:
            yield f"{name} {table.name}", table


def number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def near(printed: float, right: float, tolerance: float) -> bool:
    """Within the tolerance, or less than one away in the last digit that is printed."""
    _, _, decimals = f"{printed:.12f}".rstrip("0").partition(".")
    return abs(printed - right) <= max(tolerance * abs(right), 10.0 ** -len(decimals))


def contradictions(table: PublishedTable) -> Iterator[tuple[str, float, float]]:
    """Printed figures that do not follow from those they were made of: which, printed, right."""
    for row in table.rows:
        cells: dict[str, object] = dict(zip(table.columns, row[1 + len(table.key) :], strict=True))
        where = " ".join(map(str, row[: 1 + len(table.key)]))
        mean, limit = number(cells.get("mean")), number(cells.get("limit"))
        runs = cells.get("repeats")
        if isinstance(runs, list) and len(runs) > 1:
            yield from _of_runs(where, runs, mean, number(cells.get("deviation")))
        for column, figure in (
            ("efficiency", mean),
            ("peer_efficiency", number(cells.get("peer"))),
        ):
            printed = number(cells.get(column))
            if printed is None or not figure or not limit:
                continue
            right = 100 * (limit / figure if table.better == "lower" else figure / limit)
            if not near(printed, right, EFFICIENCY_TOLERANCE):
                yield f"{where} {column}", printed, right


def _of_runs(
    where: str, runs: Sequence[float], mean: float | None, deviation: float | None
) -> Iterator[tuple[str, float, float]]:
    right = statistics.fmean(runs)
    if mean is not None and not near(mean, right, MEAN_TOLERANCE):
        yield f"{where} mean", mean, right
    # Some divide by n and some by n - 1.
    both = statistics.pstdev(runs), statistics.stdev(runs)
    if deviation is not None and not any(near(deviation, one, DEVIATION_TOLERANCE) for one in both):
        yield f"{where} deviation", deviation, both[0]


def unremarked(table: PublishedTable) -> list[tuple[str, float, float]]:
    """Of efficiencies it is enough that a remark speaks of them: the page works out its own."""
    remarked = {float(one) for text in table.remarks for one in re.findall(r"\d+(?:\.\d+)?", text)}
    excused = any("efficienc" in text.lower() for text in table.remarks)
    return [
        one
        for one in contradictions(table)
        if one[1] not in remarked and not (excused and one[0].endswith("efficiency"))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_course_suite_is_quick_by_default(name: str) -> None:
    found = suite(name)
    assert found.name == f"cs553-{name}"
    assert tuple(found.scales) == ("quick", "full")
    quick = found.scaled("quick")
    assert quick.idle.policy == "flag"
    assert all(
        3 == repeats.min_trials == repeats.max_trials
        or (case.params.get("sample_interval_s") and repeats.max_trials == 1)
        for case in quick.cases
        for repeats in [case.repeats.applied_to(quick.repeats)]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_course_suite_has_tables_of_every_subsystem_it_measures(name: str) -> None:
    found = suite(name)
    assert found.published is not None
    with_tables = {table.subsystem for table in found.published.tables}
    assert with_tables == {case.workload.partition(".")[0] for case in found.cases}


def test_printed_figures_follow_from_their_runs_or_a_remark_says_so() -> None:
    wrong = [f"{name}: {one}" for name, table in tables() for one in unremarked(table)]
    assert not wrong, "\n".join(wrong)


def test_a_slip_in_a_figure_is_seen() -> None:
    found = suite("openstack-haswell").published
    assert found is not None
    table = next(table for table in found.tables if table.name == "cpu")
    assert not list(contradictions(table))
    first, *others = table.rows
    for column in ("mean", "deviation"):
        at = 1 + len(table.key) + table.columns.index(column)
        slipped = (*first[:at], first[at] * 10, *first[at + 1 :])  # type: ignore[operator]
        rows = (slipped, *others)
        assert len(unremarked(table.model_copy(update={"rows": rows}))) == 1


def test_a_remark_that_names_the_figure_excuses_it() -> None:
    found = suite("openstack-haswell").published
    assert found is not None
    table = next(table for table in found.tables if table.name == "mem-read-write")
    assert any("5393" in remark for remark in table.remarks)
    assert not unremarked(table)
    assert unremarked(table.model_copy(update={"remarks": ()}))
