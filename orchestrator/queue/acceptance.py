"""What may be queued: a submission is planned in full, on its host, before it is accepted. A
refusal names the field that causes it."""

from collections.abc import Sequence
from dataclasses import dataclass

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.jobs import JobSpec
from hostbench.model.result import PlannedCase
from hostbench.model.suite import ALL, Suite
from hostbench.plan.estimate import Plan
from hostbench.plan.suite import Changes, ad_hoc_suite, built_in_suites, changed, load_known_suite
from hostbench.plan.workloads import find_workload, first_between_hosts, subsystems_of
from hostbench.programs.params import check_value, known_param
from hostbench.results.ids import new_job_id
from hostbench.web.problem import Problem
from orchestrator.queue.hosts import HostFacts, HostState, HostStore
from orchestrator.queue.plans import Plans
from orchestrator.queue.record import NewJob


def refusal(message: str, *field: str) -> Problem:
    """Return the Problem of a submission that is refused because of `body.<field>`."""
    return Problem(422, "invalid", message, field=".".join(("body", *field)))


@dataclass(frozen=True)
class Accepted:
    """A submission that can be measured."""

    spec: JobSpec
    suite: Suite
    hosts: tuple[str, ...]
    subsystems: tuple[str, ...]
    far_subsystems: tuple[str, ...] = ()

    def job(self, job_id: str | None = None) -> NewJob:
        """Return it as a job, with a new id unless one is given."""
        return NewJob(
            job_id or new_job_id(self.suite.name),
            self.spec,
            self.suite,
            self.hosts,
            self.subsystems,
            self.far_subsystems,
        )


class Acceptance:
    """Judges submissions. Methods raise Problem, or RedisError."""

    def __init__(self, hosts: HostStore, plans: Plans) -> None:
        """`plans` are also those that the jobs run by."""
        self._hosts = hosts
        self._plans = plans

    def accept(self, spec: JobSpec) -> Accepted:
        """Return the accepted submission for its hosts."""
        return self.planned(spec)[0]

    def planned(self, spec: JobSpec) -> tuple[Accepted, Plan, HostFacts]:
        """Return the accepted submission, what it would measure, and the host as it is
        registered."""
        suite = requested_suite(spec)
        subsystems = _subsystems(spec, suite)
        states = self._chosen_hosts(spec)
        first, facts = states[0], self._facts(states[0])
        for subsystem in subsystems:
            if subsystem not in facts.tables:
                raise refusal(
                    f"host {first.name} has no service {subsystem}; it has "
                    f"{listing(facts.tables)}: start that service there, or name another host",
                    "hosts",
                )
        plan = self._plan(spec, suite, facts, two_hosts=len(states) > 1)
        between = first_between_hosts(plan.cases)
        far_subsystems = () if between is None else self._far_subsystems(states, between)
        names = tuple(state.name for state in states)
        return Accepted(spec, suite, names, tuple(subsystems), far_subsystems), plan, facts

    def _far_subsystems(self, states: Sequence[HostState], between: PlannedCase) -> tuple[str, ...]:
        """Return the subsystems that the second host must serve for `between`, a case between two
        hosts. Raise Problem when it serves none, or when there is no second host."""
        if len(states) == 1:
            raise refusal(
                f"{between.title} has its far end on a second host; give hosts two names: "
                f"{states[0].name}, which measures, and the far host",
                "hosts",
            )
        far = states[1]
        if between.subsystem not in far.alive:
            raise refusal(
                f"host {far.name} has no service {between.subsystem}, where {between.title} is to "
                f"have its far end; it has {listing(far.alive)}: start that service there, name "
                "another second host, or give the network cases target: loopback",
                "hosts",
            )
        return (between.subsystem,)

    def _chosen_hosts(self, spec: JobSpec) -> Sequence[HostState]:
        alive = [state for state in self._hosts.lately() if state.alive]
        if spec.hosts is not None:
            by_name = {state.name: state for state in alive}
            for name in spec.hosts:
                if name not in by_name:
                    # It may have registered a moment ago.
                    (by_name[name],) = self._hosts.states_of([name])
                if not by_name[name].alive:
                    raise self._unregistered(name)
            return [by_name[name] for name in spec.hosts]
        if not alive:
            raise refusal(
                "no host is registered; start a service that knows this orchestrator "
                "(HOSTBENCH_ORCHESTRATOR_URL)",
                "hosts",
            )
        if len(alive) > 1:
            names = listing(state.name for state in alive)
            raise refusal(f"several hosts are registered; give hosts: {names}", "hosts")
        return alive

    def _unregistered(self, name: str) -> Problem:
        states = self._hosts.states()
        alive = [state.name for state in states if state.alive]
        if name in (state.name for state in states):
            return refusal(
                f"host {shown(name)} is gone: its services renew their registration no longer; "
                "start them again",
                "hosts",
            )
        return refusal(
            f"host {shown(name)} is not registered; {did_you_mean(name, alive)}"
            f"give {listing(alive)}",
            "hosts",
        )

    def _facts(self, state: HostState) -> HostFacts:
        facts = self._hosts.facts(state)
        if facts is None:
            raise self._unregistered(state.name)
        return facts

    def _plan(self, spec: JobSpec, suite: Suite, facts: HostFacts, *, two_hosts: bool) -> Plan:
        """Return the plan of the whole suite on the host as it is."""
        try:
            return self._plans.plan(suite, facts.planned, far_host=two_hosts)
        except UsageError as error:
            if spec.workload is not None:
                _check_workload(spec, spec.workload, facts)
            raise refusal(error.message, _about(spec)) from None


def requested_suite(spec: JobSpec) -> Suite:
    """Return the suite of a submission with its changes: by name or in full, at one of its scales,
    or made for one workload. Raise Problem."""
    if spec.workload is not None:
        try:
            suite = ad_hoc_suite(spec.workload, spec.params)
        except UsageError as error:
            raise refusal(error.message, "workload") from None
    else:
        assert spec.suite is not None, "JobSpec has one of them"
        suite = _at_scale(spec.suite, spec.scale)
    return changed(suite, Changes(spec.trials, spec.idle_policy, spec.peers))


def _at_scale(name_or_suite: str | Suite, scale: str | None) -> Suite:
    suite = named_suite(name_or_suite) if isinstance(name_or_suite, str) else name_or_suite
    try:
        return suite.scaled(scale)
    except UsageError as error:
        raise refusal(error.message, "scale") from None


def named_suite(name: str) -> Suite:
    """Return a suite of this installation by its name, never by a path. Raise Problem."""
    known = built_in_suites()
    if name not in known:
        raise refusal(
            f"there is no suite {shown(name)}; {did_you_mean(name, known)}give {listing(known)}, "
            "or the suite itself",
            "suite",
        )
    try:
        return load_known_suite(known[name])
    except UsageError as error:
        raise refusal(error.message, "suite") from None


def _subsystems(spec: JobSpec, suite: Suite) -> list[str]:
    try:
        return subsystems_of(suite)
    except UsageError as error:
        raise refusal(error.message, _about(spec)) from None


def _about(spec: JobSpec) -> str:
    return "suite" if spec.workload is None else "workload"


def _check_workload(spec: JobSpec, name: str, facts: HostFacts) -> None:
    """Check workload and parameters one by one, so that the refusal names the right one."""
    try:
        workload = find_workload(facts.planned.tables, name)
    except UsageError as error:
        raise refusal(error.message, "workload") from None
    for param, value in spec.params.items():
        try:
            known = known_param(workload, param)
            if value != ALL:
                check_value(known, value, facts.inventory.allowed_cpus)
        except UsageError as error:
            raise refusal(error.message, "params", param) from None
