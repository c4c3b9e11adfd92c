"""Which cases of an interrupted job still count when it is resumed."""

from dataclasses import dataclass

from hostbench.base.units import plural
from hostbench.model.result import (
    FarHostRecord,
    PlannedCase,
    ProgramVersion,
    SessionRecord,
    StopReason,
    Verdict,
)
from hostbench.plan.workloads import is_between_hosts
from hostbench.results.document import Progress

# A skipped case has its answer; a failed one may succeed now.
COMPLETE = frozenset(
    {
        StopReason.TARGET_REACHED,
        StopReason.MAX_TRIALS,
        StopReason.MAX_TIME,
        StopReason.SKIPPED,
    }
)


@dataclass(frozen=True)
class Resumption:
    """The cases that are kept, those that need more trials in addition to the ones they have, and
    the reason why each other case is measured again."""

    kept: tuple[str, ...]
    continued: tuple[str, ...]
    again: dict[str, str]

    @property
    def sentence(self) -> str:
        """What happens, in one line."""
        total = len(self.kept) + len(self.continued) + len(self.again)
        text = f"{len(self.kept)} of {plural(total, 'case')} kept"
        if self.continued:
            text += f"; {len(self.continued)} continued with more trials"
        for reason in dict.fromkeys(self.again.values()):
            text += f"; {list(self.again.values()).count(reason)} measured again: {reason}"
        return text


def resumption(before: Progress, now: SessionRecord) -> Resumption:
    """Return what the present session may keep of an earlier one, given the versions of both."""
    kept, continued, again = [], [], {}
    earlier = {case.case: case for case in before.session.cases}
    for case in now.cases:
        reason = _why_again(before, now, earlier.get(case.case), case)
        if reason is not None:
            again[case.case] = reason
        elif case.case in before.done:
            kept.append(case.case)
        else:
            continued.append(case.case)
    return Resumption(kept=tuple(kept), continued=tuple(continued), again=again)


def _why_again(
    before: Progress, now: SessionRecord, planned: PlannedCase | None, case: PlannedCase
) -> str | None:
    """Return why a case is measured again, or None. `planned`: the case in the earlier session."""
    done, trials = before.done.get(case.case), before.trials.get(case.case)
    if done is None and not trials:
        return "not finished"
    # A wrong result stays: that it does not come again proves nothing.
    is_corrupt = done is not None and done.verdict is Verdict.CORRUPT
    if done is not None and done.stopped not in COMPLETE and not is_corrupt:
        return "failed before"
    if done is None and trials and trials[-1].verdict is Verdict.FAILED:
        return "failed before"
    if before.session.suite.scale != now.suite.scale:
        return f"measured at {_spelt_scale(before.session)}, this is {_spelt_scale(now)}"
    if case != planned:
        return "submitted with other repeats or peers"
    if before.session.hostbench != now.hostbench:
        return f"measured with hostbench {before.session.hostbench}, this is {now.hostbench}"
    if before.session.host.identity != now.host.identity:
        return f"measured on another host or kernel ({before.session.host.hostname})"
    if is_between_hosts(case) and not _same_far_host(before.session, now):
        return f"measured {_spelt_far(before.session.far_host)}, this is {_spelt_far(now.far_host)}"
    earlier, present = _program(before.session, case), _program(now, case)
    if earlier != present:
        return f"measured with {_spelt(earlier)}, this is {_spelt(present)}"
    return None


def _program(session: SessionRecord, case: PlannedCase) -> ProgramVersion | None:
    return next(
        (program for program in session.programs if program.subsystem == case.subsystem), None
    )


def _same_far_host(before: SessionRecord, now: SessionRecord) -> bool:
    one, other = before.far_host, now.far_host
    return (one and one.identity) == (other and other.identity)


def _spelt_far(far: FarHostRecord | None) -> str:
    if far is None:
        return "on one host"
    return f"with {far.inventory.hostname} at {far.address} and {_spelt(far.program)}"


def _spelt_scale(session: SessionRecord) -> str:
    scale = session.suite.scale
    return "no scale" if scale is None else f"scale {scale}"


def _spelt(program: ProgramVersion | None) -> str:
    if program is None:
        return "an unknown program"
    return f"{program.name} {program.version} ({program.sha256[:8]})"
