"""How long a plan takes, and when a trial is given up."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hostbench.host.scratch import takes_scratch
from hostbench.judge.peer import peer_pairs
from hostbench.model.events import ParamValue
from hostbench.model.result import Estimate, PlannedCase
from hostbench.model.service import TRIAL_S_MOST
from hostbench.model.suite import Suite
from hostbench.model.table import Workload

# Start, calibration and evaluation of one trial, in addition to its warm-up and its timed region.
TRIAL_OVERHEAD_S = 0.1
# A trial is given up only if something is wrong: a loaded host lengthens everything except the
# timed region.
TIMEOUT_FACTOR = 2.0
TIMEOUT_EXTRA_S = 30.0
# The time of a fixed work is not known in advance.
UNKNOWN_TRIAL_TIMEOUT_S = 3600.0
# A workload with a set-up takes many times as long with all of a host's memory.
SETUP_TIMEOUT_S = 600.0
# A file many times as large as the default takes as many times as long to fill, and longer on a
# slow disk.
SLOW_DISK_FACTOR = 10.0
GATE_S = 1.0
FILE_BYTES = "file_bytes"
SIZE = "size_bytes"


@dataclass(frozen=True)
class CaseTime:
    """Seconds of one trial, and of one trial of each of its peers, from a short trial."""

    trial_s: float
    peers_s: float


@dataclass(frozen=True)
class Plan:
    """The cases of one suite on one host, in the order they run. `times` has, by case, the times
    that were found by trying (timing.py)."""

    suite: Suite
    cases: tuple[PlannedCase, ...]
    times: Mapping[str, CaseTime] = field(default_factory=dict)

    def without(self, kept: Collection[str]) -> "Plan":
        """Return the rest of the plan when the cases in `kept` need not be measured."""
        known = frozenset(kept)
        left = tuple(case for case in self.cases if case.case not in known)
        return Plan(suite=self.suite, cases=left, times=self.times)

    @property
    def blocks(self) -> list[list[PlannedCase]]:
        """The cases, as one list for each entry of the suite."""
        grouped = itertools.groupby(self.cases, key=lambda case: case.block)
        return [list(cases) for _, cases in grouped]

    def gates(self) -> int:
        """How often the idle gate decides; never for a case that is skipped."""
        measured = [case for case in self.cases if case.skip is None]
        per = self.suite.idle.per
        return {
            "suite": min(1, len(measured)),
            "block": len({case.block for case in measured}),
            "case": len(measured),
        }[per]

    def estimate(self) -> Estimate:
        """Return the least and the most time that this plan takes, without what a busy host
        adds."""
        measured = [case for case in self.cases if case.skip is None]
        low_s, high_s = self._gate_times()
        for case in self.cases:
            low, high = self.case_times(case)
            low_s += low
            high_s += high
        return Estimate(
            low_s=low_s,
            high_s=high_s,
            trials_low=sum(case.repeats.min_trials for case in measured),
            trials_high=sum(case.repeats.max_trials for case in measured),
            peer_trials_low=sum(_peer_trials(case)[0] for case in self.cases),
            peer_trials_high=sum(_peer_trials(case)[1] for case in self.cases),
            complete=all(self.trial_time_s(case) is not None for case in self.cases),
        )

    def trial_time_s(self, case: PlannedCase) -> float | None:
        """Return the seconds of one trial, or None if unknown."""
        found = self.times.get(case.case)
        return case.trial_time_s if found is None else found.trial_s

    def case_times(self, case: PlannedCase) -> tuple[float, float]:
        """Return the least and the most seconds of all trials of a case and of its peers."""
        found = self.times.get(case.case)
        trial_s = self.trial_time_s(case) or 0.0
        peers_s = case.peers_time_s if found is None else found.peers_s
        least_s = case.repeats.min_trials * trial_s
        most_s = min(case.repeats.max_trials * trial_s, case.repeats.max_time_s)
        low_rounds, high_rounds = _peer_rounds(case)
        return least_s + low_rounds * peers_s, max(least_s, most_s) + high_rounds * peers_s

    def _gate_times(self) -> tuple[float, float]:
        if self.suite.idle.policy == "force":
            return 0.0, 0.0
        longest_s = max(GATE_S, self.suite.idle.timeout_s)
        return self.gates() * GATE_S, self.gates() * longest_s


def _peer_rounds(case: PlannedCase) -> tuple[int, int]:
    """Return after how many of our trials the peers run, at least and at most."""
    pairs = peer_pairs(case)
    return min(case.repeats.min_trials, pairs), pairs


def _peer_trials(case: PlannedCase) -> tuple[int, int]:
    low_rounds, high_rounds = _peer_rounds(case)
    return low_rounds * len(case.peers), high_rounds * len(case.peers)


def trial_time_s_of(workload: Workload, params: Mapping[str, ParamValue]) -> float | None:
    """Return the seconds of one trial, or None if it has no fixed duration."""
    duration_s, warmup_s = params.get("duration_s"), params.get("warmup_s", 0.0)
    if not isinstance(duration_s, int | float) or not isinstance(warmup_s, int | float):
        return None
    return float(duration_s + warmup_s + setup_s(workload, params) + TRIAL_OVERHEAD_S)


def setup_s(workload: Workload, params: Mapping[str, ParamValue]) -> float:
    """Return about how many seconds each trial takes before its warm-up, for example to fill and
    check memory.

    The first trial of a job fills the job's file, which is kept for all others.
    """
    if takes_scratch(workload):
        return 0.0
    size = params.get(SIZE)
    if isinstance(size, str) or size is None or not workload.setup_s_per_byte:
        return workload.setup_s
    return size * workload.setup_s_per_byte


def _setup_timeout_s(workload: Workload, params: Mapping[str, ParamValue]) -> float:
    """Return how long filling memory or a file may take; 0 for a workload that fills nothing."""
    if not workload.setup_s:
        return 0.0
    param, size = workload.param(FILE_BYTES), params.get(FILE_BYTES)
    if param is None or not isinstance(param.default, int) or not isinstance(size, int | float):
        return SETUP_TIMEOUT_S
    return max(SETUP_TIMEOUT_S, SLOW_DISK_FACTOR * workload.setup_s * size / param.default)


def timeout_s_of(
    workload: Workload, params: Mapping[str, ParamValue], trial_time_s: float | None
) -> float:
    """Return after how many seconds a trial is given up, at most TRIAL_S_MOST."""
    # A team completes its last problem, however long that takes.
    timeout_s = trial_timeout_s(None if workload.kind == "team" else trial_time_s)
    return min(timeout_s + _setup_timeout_s(workload, params), TRIAL_S_MOST)


def trial_timeout_s(trial_time_s: float | None) -> float:
    """Return after how many seconds a trial is given up that should take `trial_time_s`; None:
    unknown."""
    if trial_time_s is None:
        return UNKNOWN_TRIAL_TIMEOUT_S
    return trial_time_s * TIMEOUT_FACTOR + TIMEOUT_EXTRA_S
