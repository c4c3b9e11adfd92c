"""Whose turn it is after a trial of ours: the peers of a case, each with what it is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostbench.judge.peer import judged_peer_trial
from hostbench.model.limit import Limit
from hostbench.model.result import PlannedCase, TrialRecord
from hostbench.model.table import Metric
from hostbench.model.trial import Beside, Trial, trial_name
from hostbench.plan.estimate import trial_timeout_s
from hostbench.plan.workloads import split_workload
from hostbench.programs.peer import Peer
from hostbench.programs.subsystem import peers_of

FAR_CPUS = "far_cpus"
# The whole-run figure beside a rate, and beside a time.
WHOLE_RUN = {"higher": "_makespan", "lower": "_mean"}


@dataclass(frozen=True)
class PeerTurn:
    """One trial of one peer beside one of ours."""

    peer: Peer
    trial: Trial
    beside: Beside
    limit: Limit | None

    def judged(self, record: TrialRecord) -> TrialRecord:
        """What the trial is worth."""
        return judged_peer_trial(record, self.peer, self.beside, self.limit)


def peer_turns(case: PlannedCase, ours: TrialRecord, primary: Metric) -> Iterator[PeerTurn]:
    """The peers of `case` after `ours`, which has a figure, with the parameters it resolved."""
    assert ours.start is not None and ours.end is not None and ours.value is not None
    subsystem, workload = split_workload(case.workload)
    params = {
        name: value
        for name, value in ours.start.params.items()
        if value is not None and not isinstance(value, tuple)
    }
    beside = Beside(
        cpus=ours.start.placement.cpus,
        rate=ours.end.metrics.get(primary.name + WHOLE_RUN[primary.direction]) or ours.value,
        elapsed_s=ours.end.elapsed_s,
        far_cpus=_cpus(ours.start.params.get(FAR_CPUS)),
    )
    for peer in peers_of(subsystem, workload, params):
        if peer.tool not in case.peers:
            continue
        trial = Trial(
            tool=peer.tool,
            subsystem=subsystem,
            workload=workload,
            params=params,
            timeout_s=trial_timeout_s(peer.trial_time_s(beside.elapsed_s)),
            beside=beside,
            id=trial_name(case, ours.index, peer.tool),
        )
        yield PeerTurn(peer, trial, beside, _limit(ours, peer, primary))


def _cpus(told: object) -> tuple[int, ...]:
    return told if isinstance(told, tuple) else ()


def _limit(ours: TrialRecord, peer: Peer, primary: Metric) -> Limit | None:
    """What bounds our primary metric bounds a whole-run mean of the same quantity too; a peer's
    time is held against no limit."""
    if peer.metric is None or primary.direction == "lower":
        return None
    limit = ours.limits.get(peer.metric) or ours.limits.get(primary.name)
    return limit if limit is not None and limit.unit == peer.unit else None
