"""The facts that differ between two sets of jobs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hostbench.model.decision import FactDifference, JobFigures


def fact_differences(a: Sequence[JobFigures], b: Sequence[JobFigures]) -> Iterator[FactDifference]:
    """Yield every fact whose values differ between the sides."""
    names = dict.fromkeys(name for job in (*a, *b) for name in job.facts)
    for name in names:
        on_a, on_b = _values(a, name), _values(b, name)
        if set(on_a) != set(on_b):
            yield FactDifference(fact=name, a=on_a, b=on_b)


def _values(jobs: Sequence[JobFigures], name: str) -> tuple[str, ...]:
    found = Counter(job.facts[name] for job in jobs if name in job.facts)
    return tuple(value for value, _ in found.most_common())
