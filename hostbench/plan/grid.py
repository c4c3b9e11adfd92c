"""From a suite to the ordered cases of one host, with the time that they will take."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from hostbench.base.errors import UsageError
from hostbench.judge.case import BEST
from hostbench.model.events import ParamValue
from hostbench.model.host import HostInventory
from hostbench.model.registry import find_subsystem
from hostbench.model.result import PlannedCase
from hostbench.model.suite import (
    ALL,
    CASES_MOST,
    DURATION,
    Repeats,
    RepeatsChange,
    Suite,
    SuiteCase,
)
from hostbench.model.table import Param, Table, Workload
from hostbench.plan.estimate import TRIAL_OVERHEAD_S, Plan, setup_s, timeout_s_of, trial_time_s_of
from hostbench.plan.label import label_of
from hostbench.plan.workloads import (
    AD_HOC,
    AUTO,
    FAR_HOST,
    LOOPBACK,
    TARGET,
    case_hash,
    find_workload,
    is_between_hosts,
    split_workload,
)
from hostbench.programs.params import check_params, check_value, cpu_count, known_param
from hostbench.programs.peer import Peer
from hostbench.programs.subsystem import chosen_peers

THREADS = "threads"
DEVICE = "device"
FIRST_GPU = "auto"

NO_FAR_HOST = (
    "its far end runs on a second host, but this job has only one; name a second host with "
    "--far-host, or as the second of a job's hosts"
)


def make_plan(
    suite: Suite, tables: Mapping[str, Table], host: HostInventory, *, far_host: bool = False
) -> Plan:
    """Return the plan of a suite on this host; `tables` by subsystem.

    `far_host`: there is a second host, where network cases have their far ends unless they say
    otherwise. A suite that still has several scales is planned at its first one. Raise UsageError
    for an unknown workload, parameter or value, or for too many cases.
    """
    suite = suite.scaled()
    _check_size(suite, tables, host)
    planned: dict[str, PlannedCase] = {}
    for block, entry in enumerate(suite.cases):
        with _blaming(suite, block):
            workload = find_workload(tables, entry.workload)
            own = []
            for params in _combinations(entry, workload, host):
                placed = _with_target(params, workload, far_host=far_host)
                case = _planned(suite, entry, workload, block, placed, host)
                if not far_host and entry.far_host == "optional" and is_between_hosts(case):
                    case = _skipped(case)
                # `threads: [1, all]` on one CPU is one case, not two.
                own.append(_one_of(planned.get(case.case), case))
                planned[case.case] = own[-1]
            _check_named_peers(entry, [case for case in own if case.block == block])
    return Plan(suite=suite, cases=tuple(planned.values()))


@contextlib.contextmanager
def _blaming(suite: Suite, position: int) -> Iterator[None]:
    """Add to a UsageError the suite's case that it is about."""
    try:
        yield
    except UsageError as error:
        # A single workload was requested, without a suite file.
        where = "" if suite.name == AD_HOC else f"suite {suite.name}, cases[{position}], "
        raise UsageError(f"{where}{suite.cases[position].workload}: {error.message}") from None


def _check_size(suite: Suite, tables: Mapping[str, Table], host: HostInventory) -> None:
    """Raise UsageError for too many cases, counted before anything is multiplied out: a grid may
    describe more than memory can hold."""
    cases = 0
    for position, entry in enumerate(suite.cases):
        with _blaming(suite, position):
            axes = _axes(entry, find_workload(tables, entry.workload), host)
        cases += math.prod(len(values) for values in axes.values())
    if cases > CASES_MOST:
        raise UsageError(
            f"suite {suite.name} has {cases} cases, {CASES_MOST} are allowed; "
            "make its grids smaller or split it"
        )


def _axes(
    entry: SuiteCase, workload: Workload, host: HostInventory
) -> dict[str, tuple[ParamValue, ...]]:
    """Return the values of each parameter of the grid, with `all` expanded and without
    duplicates."""
    axes = {}
    for name, requested in entry.grid.items():
        if name in entry.params:
            raise UsageError(f"{name} is in both params and grid; remove one of them")
        param = known_param(workload, name)
        values = [requested] if isinstance(requested, str) else requested
        spelt = itertools.chain.from_iterable(
            _spelt_out(workload, param, value, host) for value in values
        )
        axes[name] = tuple(dict.fromkeys(spelt))
    if all(_lacks_gpu(workload, device, host) for device in _requested_devices(entry, axes)):
        # None of its cases can run: the first one reports the reason.
        return {name: values[:1] for name, values in axes.items()}
    return axes


def _requested_devices(
    entry: SuiteCase, axes: Mapping[str, Sequence[ParamValue]]
) -> Sequence[ParamValue]:
    return axes.get(DEVICE) or [entry.params.get(DEVICE, FIRST_GPU)]


def _lacks_gpu(workload: Workload, device: ParamValue, host: HostInventory) -> bool:
    """Whether a case is for the first GPU of a host without GPUs. If the inventory of GPUs failed,
    that is unknown, and the program decides."""
    wanted = workload.param(DEVICE) is not None and device == FIRST_GPU
    looked = host.gpus is not None and host.gpus.reason is None
    return wanted and looked and not _gpu_indexes(host)


def _spelt_out(
    workload: Workload, param: Param, value: ParamValue, host: HostInventory
) -> Sequence[ParamValue]:
    """Return the values that one value of a grid stands for."""
    if value != ALL:
        return [check_value(param, value, host.allowed_cpus)]
    if param.name == THREADS:
        return [ALL]  # their number depends on the other parameters
    if param.name == DEVICE:
        return _gpu_indexes(host) or [FIRST_GPU]
    if param.type != "choice":
        raise UsageError(
            f"{param.name}: all stands for every choice, but {param.name} has no choices; list "
            "the values"
        )
    words = [word for word in param.words if word != BEST]
    if workload.param(DEVICE) is not None:
        # The table only knows the first device; for another one, the program reports what it lacks.
        return words
    usable = [word for word in words if word not in param.unsupported]
    # If nothing is usable, the program itself reports why for the first.
    return usable or list(param.words[:1])


def _gpu_indexes(host: HostInventory) -> list[ParamValue]:
    """Return the GPUs of a host as values of the parameter `device`.

    They are numbers, so that the same request is the same case on every host. A CPU that OpenCL
    also offers is measured only if it is named.
    """
    devices = () if host.gpus is None else host.gpus.devices
    return [str(device.index) for device in devices if device.type != "cpu"]


def _combinations(
    entry: SuiteCase, workload: Workload, host: HostInventory
) -> Iterator[dict[str, ParamValue]]:
    axes = _axes(entry, workload, host)
    for values in itertools.product(*axes.values()):
        yield {**entry.params, **dict(zip(axes, values, strict=True))}


def _with_target(
    requested: dict[str, ParamValue], workload: Workload, *, far_host: bool
) -> dict[str, ParamValue]:
    """Replace the target `auto` with `far_host` or `loopback`: a case with one host is not the same
    as a case with two."""
    param = workload.param(TARGET)
    if param is None or requested.get(TARGET, param.default) != AUTO:
        return requested
    return {**requested, TARGET: FAR_HOST if far_host else LOOPBACK}


def _planned(
    suite: Suite,
    entry: SuiteCase,
    workload: Workload,
    block: int,
    requested: Mapping[str, ParamValue],
    host: HostInventory,
) -> PlannedCase:
    checked = _with_threads(check_params(workload, requested, host.allowed_cpus), workload, host)
    given = {param.name: checked[param.name] for param in workload.params if param.name in checked}
    params = _full_params(workload, given)
    trial_time_s = trial_time_s_of(workload, params)
    timeout_s = entry.timeout_s or timeout_s_of(workload, params, trial_time_s)
    peers = () if workload.naive else _peers(suite, entry, params)
    # The time of a fixed work and its peers is unknown.
    elapsed_s = (trial_time_s or 0.0) - TRIAL_OVERHEAD_S - setup_s(workload, params)
    peers_time_s = sum(peer.trial_time_s(max(0.0, elapsed_s)) for peer in peers)
    if _lacks_gpu(workload, given.get(DEVICE, FIRST_GPU), host):
        # The program reports that at once, and no peer runs beside it.
        trial_time_s = peers_time_s = 0.0
    return PlannedCase(
        case=case_hash(entry.workload, params),
        workload=entry.workload,
        params=params,
        given=tuple(given),
        label=label_of(entry, given, workload),
        block=block,
        repeats=_repeats(suite.repeats, entry.repeats, entry.workload),
        trial_time_s=trial_time_s,
        timeout_s=timeout_s,
        peers=tuple(peer.tool for peer in peers),
        peers_time_s=peers_time_s,
        naive=workload.naive,
    )


# One object is shared by thousands of cases.
@functools.lru_cache
def _repeats(of_suite: Repeats, change: RepeatsChange, workload: str) -> Repeats:
    repeats = change.applied_to(of_suite)
    if repeats.target_half_width is not None:
        return repeats
    subsystem, _ = split_workload(workload)
    target = find_subsystem(subsystem).target_half_width
    return repeats.model_copy(update={"target_half_width": target})


def _one_of(earlier: PlannedCase | None, later: PlannedCase) -> PlannedCase:
    """Return the case that two entries request: as in the first one, with the peers of both. If
    only one of them can be skipped, it is not skipped."""
    if earlier is None or (earlier.skip is not None and later.skip is None):
        return later
    added = [tool for tool in later.peers if tool not in earlier.peers]
    if not added:
        return earlier
    # A plan does not store the time of each tool, so tools in both entries are counted twice.
    peers_time_s = earlier.peers_time_s + later.peers_time_s
    return earlier.model_copy(
        update={"peers": (*earlier.peers, *added), "peers_time_s": peers_time_s}
    )


def _skipped(case: PlannedCase) -> PlannedCase:
    """Return a case that needs a second host, skipped because there is none."""
    return case.model_copy(
        update={"skip": NO_FAR_HOST, "trial_time_s": 0.0, "peers": (), "peers_time_s": 0.0}
    )


def _peers(suite: Suite, entry: SuiteCase, params: Mapping[str, ParamValue]) -> tuple[Peer, ...]:
    choice = suite.peers if entry.peers is None else entry.peers
    return chosen_peers(choice, *split_workload(entry.workload), params)


def _check_named_peers(entry: SuiteCase, cases: Sequence[PlannedCase]) -> None:
    """Raise UsageError for a tool that an entry names and that fits none of its cases. A tool that
    a suite names for all its entries need not fit each of them."""
    named = entry.peers if isinstance(entry.peers, list) else []
    cases = [case for case in cases if case.skip is None]
    for tool in named:
        if cases and not any(tool in case.peers for case in cases):
            raise UsageError(
                f"peer {tool} measures nothing comparable; leave it out (docs/peers.md lists "
                "the peers of each workload)"
            )


def _with_threads(
    given: dict[str, ParamValue], workload: Workload, host: HostInventory
) -> dict[str, ParamValue]:
    """Return `threads` as a number, so that the case has the same meaning on every host.

    It is one for each CPU given, else one for each CPU allowed, as in the programs. A default that
    is a number is used unless `all` is requested.
    """
    param = workload.param(THREADS)
    if param is None or given.get(THREADS, param.default) != ALL:
        return given
    cpus = given.get("cpus")
    count = len(host.allowed_cpus) if cpus is None else cpu_count(str(cpus))
    return {**given, THREADS: count}


def _full_params(workload: Workload, given: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return every request parameter that has a value: the given one, else the default."""
    params: dict[str, ParamValue] = {}
    for param in workload.params:
        if param.name in given:
            params[param.name] = given[param.name]
        elif param.scope == "request" and param.default is not None:
            params[param.name] = param.default
    if DURATION not in given and any(p.ends_trial and p.name in given for p in workload.params):
        params.pop(DURATION, None)
    return params
