"""What the tables say that parameters mean."""

from collections.abc import Iterator

import pytest

from hostbench.model.old_params import old_meaning
from hostbench.model.registry import subsystem_names
from hostbench.model.suite import DURATION, FIXED_WORK
from hostbench.model.table import Param, ParamMeaning, Workload
from hostbench.plan.label import param_word
from hostbench.programs.program import load_program

# Their least work is a round: over all pairs of CPUs, all numbers of threads, all three phases,
# all pairs of nodes.
ROUNDS = {"clock_ladder", "core_to_core", "numa", "smt_yield"}


def workloads() -> Iterator[Workload]:
    for subsystem in subsystem_names():
        yield from load_program(subsystem).table.workloads


def params() -> Iterator[tuple[str, Param]]:
    for workload in workloads():
        yield from ((workload.name, param) for param in workload.params)


def test_no_parameter_says_how_and_what() -> None:
    wrong = [
        (workload, param.name)
        for workload, param in params()
        if "how" in param.roles and len(param.roles) > 1
    ]
    assert not wrong


def test_words_that_are_resolved_or_fall_back_are_words_it_takes() -> None:
    for workload, param in params():
        words = {*param.words, *([str(param.default)] if param.type == "text" else [])}
        assert set(param.resolved) <= words, (workload, param.name)
        fallbacks = {*param.fallbacks, *param.fallbacks.values()}
        assert fallbacks <= words, (workload, param.name)
        assert param.resolved or not param.resolved_once, (workload, param.name)


def test_one_parameter_ends_the_trials_of_a_workload() -> None:
    """Suites know these parameters before they know a table."""
    for workload in workloads():
        fixing = [param.name for param in workload.params if param.ends_trial]
        assert len(fixing) == (workload.name not in ROUNDS), workload.name
        assert set(fixing) <= set(FIXED_WORK), workload.name
        excludes = {param.name for param in workload.params if param.excludes == DURATION}
        assert excludes == {*fixing} & {"work"}, workload.name


@pytest.mark.parametrize("role", ["tag", "axis", "how"])
def test_series_go_on_where_old_documents_end(role: str) -> None:
    """A point or a label of today and one from a document without roles belong together."""

    def has(meaning: ParamMeaning) -> bool:
        is_tag = "tag" in meaning.roles
        return role in meaning.roles and (role != "axis" or not is_tag)

    for workload, param in params():
        old = old_meaning(param.name)
        if not old.roles:
            continue
        assert has(param) == has(old), (workload, param.name)
        for value in (1, 2, *param.words):
            assert param_word(param, value) == param_word(old, value), (workload, param.name)
