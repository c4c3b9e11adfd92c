"""What one finished trial is worth: its figure, its limits, its verdict."""

import time
from collections.abc import Mapping, Sequence

from hostbench.models.limit import Limit
from hostbench.models.result import PlannedCase, Reason, TrialFailure, TrialRecord, Verdict
from hostbench.models.table import Metric
from hostbench.trial import TrialFailed
from hostbench.verdict import above_limit, contaminations, efficiency, trial_disturbances

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


def unmeasured_trial(case: PlannedCase, why: str) -> TrialRecord:
    """The record of a case that its plan skips: no program was asked."""
    return TrialRecord(
        case=case.case,
        index=0,
        time_unix_s=time.time(),
        wall_s=0.0,
        verdict=Verdict.SKIPPED,
        reasons=(Reason(code="no_far_host", text=why),),
    )


def measured_trial(
    record: TrialRecord, metrics: Sequence[Metric], limits: dict[str, Limit]
) -> TrialRecord:
    """A trial with a figure: invalid above its limit, or where the page cache stood in for the
    disk, else disturbed or clean."""
    assert record.start is not None and record.end is not None
    primary = primary_metric(metrics)
    value = record.end.metrics[primary.name]
    too_high = above_limit(record.end.metrics, limits, metrics)
    not_the_disk = contaminations(record.start, record.warnings)
    disturbances = trial_disturbances(record.start, record.end)
    verdict = Verdict.CLEAN
    if disturbances:
        verdict = Verdict.DISTURBED
    if too_high and (not disturbances or _far_above(record.end.metrics, limits, metrics)):
        verdict = Verdict.INVALID
    if not_the_disk:
        verdict = Verdict.INVALID
    return record.model_copy(
        update={
            "verdict": verdict,
            "reasons": too_high + not_the_disk + disturbances,
            "value": value,
            "efficiency": efficiency(value, limits.get(primary.name), primary.direction),
            "limits": limits,
        }
    )


def _far_above(
    figures: Mapping[str, float | None], limits: Mapping[str, Limit], metrics: Sequence[Metric]
) -> bool:
    """Whether some figure is so far above its limit that no disturbance explains it."""
    directions = {metric.name: metric.direction for metric in metrics}
    shares = (
        efficiency(figures.get(name), limit, directions.get(name, "higher"))
        for name, limit in limits.items()
    )
    return any(share is not None and share > FAR_ABOVE for share in shares)
