"""What one finished trial is worth: its figure, its limits, its verdict."""

from collections.abc import Mapping, Sequence

from hostbench.models.limit import Limit
from hostbench.models.result import Reason, TrialFailure, TrialRecord, Verdict
from hostbench.models.table import Metric
from hostbench.trial import TrialFailed
from hostbench.verdict import above_limit, trial_disturbances

# In a disturbed trial the clock that the limit is made of may be of other moments than the figure.
FAR_ABOVE = 1.05


def primary_metric(metrics: Sequence[Metric]) -> Metric:
    """The one that has a limit, a verdict and a line in the table."""
    return next(metric for metric in metrics if metric.primary)


def failed_trial(record: TrialRecord, failure: TrialFailed) -> TrialRecord:
    """A trial without a figure."""
    return record.model_copy(
        update={
            "verdict": Verdict.FAILED,
            "reasons": (Reason(code=failure.code, text=failure.message),),
            "failure": TrialFailure(
                code=failure.code, message=failure.message, exit_code=int(failure.exit_code)
            ),
        }
    )


def skipped_trial(record: TrialRecord) -> TrialRecord:
    """A trial that cannot run here."""
    assert record.skip is not None, "a stream without end, skip or failure"
    return record.model_copy(
        update={
            "verdict": Verdict.SKIPPED,
            "reasons": (Reason(code="unsupported", text=record.skip.reason),),
        }
    )


def measured_trial(
    record: TrialRecord, metrics: Sequence[Metric], limits: dict[str, Limit]
) -> TrialRecord:
    """A trial with a figure: invalid above its limit, else disturbed or clean."""
    assert record.start is not None and record.end is not None
    units = {metric.name: metric.unit for metric in metrics}
    primary = primary_metric(metrics).name
    value = record.end.metrics[primary]
    too_high = above_limit(record.end.metrics, limits, units)
    disturbances = trial_disturbances(record.start, record.end)
    verdict = Verdict.CLEAN
    if disturbances:
        verdict = Verdict.DISTURBED
    if too_high and (not disturbances or _far_above(record.end.metrics, limits)):
        verdict = Verdict.INVALID
    return record.model_copy(
        update={
            "verdict": verdict,
            "reasons": too_high + disturbances,
            "value": value,
            "efficiency": efficiency(value, limits.get(primary)),
            "limits": limits,
        }
    )


def _far_above(metrics: Mapping[str, float | None], limits: Mapping[str, Limit]) -> bool:
    """Whether some figure is so far above its limit that no disturbance explains it."""
    return any(
        value > limit.value * FAR_ABOVE
        for name, limit in limits.items()
        if limit.value is not None and (value := metrics.get(name)) is not None
    )


def efficiency(value: float | None, limit: Limit | None) -> float | None:
    """The figure over its limit; None when there is none."""
    if value is None or limit is None or not limit.value:
        return None
    return value / limit.value
