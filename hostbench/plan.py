"""From a suite to the ordered cases of one host, with the time they will take."""

import contextlib
import hashlib
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.betweenhosts import AUTO, FAR_HOST, LOOPBACK, TARGET, is_between_hosts
from hostbench.choices import BEST
from hostbench.errors import UsageError, did_you_mean, listing, shown
from hostbench.models.events import ParamValue
from hostbench.models.host import HostInventory
from hostbench.models.result import PlannedCase
from hostbench.models.service import TRIAL_S_MOST
from hostbench.models.suite import ALL, DURATION, FIXED_WORK, Suite, SuiteCase
from hostbench.models.table import Metric, Param, Table, Workload
from hostbench.params import check_params, check_value, cpu_count, known_param
from hostbench.peers import Peer, chosen_peers
from hostbench.program import SUBSYSTEMS
from hostbench.repeats import peer_pairs
from hostbench.scratch import takes_scratch
from hostbench.units import exact_bytes

CASES_MOST = 10_000
CASE_HASH_DIGITS = 12

# Start, calibration and evaluation of one trial beyond its warm-up and its timed region.
TRIAL_OVERHEAD_S = 0.1
# A trial is given up only when something is wrong: a loaded host stretches everything but the
# timed region.
TIMEOUT_FACTOR = 2.0
TIMEOUT_EXTRA_S = 30.0
# The time of a fixed work is not known beforehand.
UNKNOWN_TRIAL_TIMEOUT_S = 3600.0
# A workload whose set-up takes time at all takes many times as long with all of a host's memory.
SETUP_TIMEOUT_S = 600.0
# A file of many times the default takes as many times as long to fill, and on a slow disk more.
SLOW_DISK_FACTOR = 10.0
GATE_S = 1.0
# What the suite is called that hostbench makes of one workload.
AD_HOC = "ad-hoc"
THREADS = "threads"
DEVICE = "device"
FIRST_GPU = "auto"
BYTES = "_bytes"
FILE_BYTES = "file_bytes"
SIZE = "size_bytes"

NO_FAR_HOST = (
    "its far end is on a second host, and this job has one host alone; name a second one with "
    "--far-host, or as the second of a job's hosts"
)

# What a label counts: `2 threads`, `1 stream`.
_COUNTED = {THREADS: "thread", "streams": "stream", "load_streams": "load stream"}
# Words that mean nothing without their parameter: `lock each`.
_UNTOLD = frozenset({"none", "once", "each"})
# How a case is measured rather than what: they do not belong into its label.
_UNLABELLED = frozenset({"duration_s", "warmup_s", "slice_s", "sample_interval_s"})


@dataclass(frozen=True)
class Estimate:
    """Seconds from the first gate to the last trial. `complete` is False when some trial's time
    cannot be known, such as that of a fixed work."""

    low_s: float
    high_s: float
    trials_low: int
    trials_high: int
    peer_trials_low: int
    peer_trials_high: int
    complete: bool


@dataclass(frozen=True)
class CaseTime:
    """Seconds of one trial, and of one of each of its peers, as a moment's trial has told them."""

    trial_s: float
    peers_s: float


@dataclass(frozen=True)
class Plan:
    """The cases of one suite on one host, in the order they run. `times` by case, of those whose
    time was found out by trying (timing.py)."""

    suite: Suite
    cases: tuple[PlannedCase, ...]
    times: Mapping[str, CaseTime] = field(default_factory=dict)

    def without(self, kept: Collection[str]) -> "Plan":
        """What is left to do when the cases in `kept` need not be measured."""
        left = tuple(case for case in self.cases if case.case not in kept)
        return Plan(suite=self.suite, cases=left, times=self.times)

    @property
    def blocks(self) -> list[list[PlannedCase]]:
        """The cases, one list for each entry of the suite."""
        grouped = itertools.groupby(self.cases, key=lambda case: case.block)
        return [list(cases) for _, cases in grouped]

    def gates(self) -> int:
        """How often the idle gate is asked: never for a case that is skipped."""
        measured = [case for case in self.cases if case.skip is None]
        per = self.suite.idle.per
        return {
            "suite": min(1, len(measured)),
            "block": len({case.block for case in measured}),
            "case": len(measured),
        }[per]

    def estimate(self) -> Estimate:
        """The time this plan takes at least and at most, without what a busy host adds."""
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
        """Seconds of one trial; None: nobody knows."""
        found = self.times.get(case.case)
        return case.trial_time_s if found is None else found.trial_s

    def case_times(self, case: PlannedCase) -> tuple[float, float]:
        """Seconds of all trials of a case and of its peers, at least and at most."""
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
    """After how many of our trials the peers run, at least and at most."""
    pairs = peer_pairs(case)
    return min(case.repeats.min_trials, pairs), pairs


def _peer_trials(case: PlannedCase) -> tuple[int, int]:
    low_rounds, high_rounds = _peer_rounds(case)
    return low_rounds * len(case.peers), high_rounds * len(case.peers)


def subsystems_of(suite: Suite) -> list[str]:
    """The subsystems whose programs a suite needs. Raises UsageError for an unknown one."""
    return sorted({split_workload(case.workload)[0] for case in suite.cases})


def split_workload(full_name: str) -> tuple[str, str]:
    """("cpu", "fma") of "cpu.fma". Raises UsageError for anything else."""
    subsystem, dot, name = full_name.partition(".")
    if not dot or not name:
        raise UsageError(
            f"workload {shown(full_name)} has no subsystem; write it like cpu.fma, "
            f"with {listing(SUBSYSTEMS)} before the dot"
        )
    if subsystem not in SUBSYSTEMS:
        raise UsageError(
            f"workload {shown(full_name)}: there is no subsystem {shown(subsystem)}; "
            f"{did_you_mean(subsystem, SUBSYSTEMS)}give {listing(SUBSYSTEMS)}"
        )
    return subsystem, name


def make_plan(
    suite: Suite, tables: Mapping[str, Table], host: HostInventory, *, far_host: bool = False
) -> Plan:
    """The plan of a suite on this host; `tables` by subsystem. `far_host`: there is a second one,
    where network cases have their far ends unless they say otherwise. A suite that still has
    several scales is planned at its first.

    Raises UsageError for an unknown workload, parameter or value, or for too many cases.
    """
    suite = suite.scaled()
    _check_size(suite, tables, host)
    planned: dict[str, PlannedCase] = {}
    for block, entry in enumerate(suite.cases):
        with _blaming(suite, block):
            workload = find_workload(tables, entry.workload)
            for params in _combinations(entry, workload, host):
                placed = _with_target(params, workload, far_host=far_host)
                case = _planned(suite, entry, workload, block, placed, host)
                if not far_host and entry.far_host == "optional" and is_between_hosts(case):
                    case = _skipped(case)
                # `threads: [1, all]` on one CPU is one case, not two.
                planned[case.case] = _one_of(planned.get(case.case), case)
            _check_named_peers(entry, [case for case in planned.values() if case.block == block])
    return Plan(suite=suite, cases=tuple(planned.values()))


@contextlib.contextmanager
def _blaming(suite: Suite, position: int) -> Iterator[None]:
    """Says of a UsageError in which case of the suite it is."""
    try:
        yield
    except UsageError as error:
        # Somebody who asked for one workload has written no suite.
        where = "" if suite.name == AD_HOC else f"suite {suite.name}, cases[{position}], "
        raise UsageError(f"{where}{suite.cases[position].workload}: {error.message}") from None


def find_workload(tables: Mapping[str, Table], full_name: str) -> Workload:
    """The workload in its table. Raises UsageError naming the nearest."""
    subsystem, name = split_workload(full_name)
    workload = tables[subsystem].workload(name)
    if workload is not None:
        return workload
    known = [f"{subsystem}.{workload.name}" for workload in tables[subsystem].workloads]
    raise UsageError(
        f"there is no workload {shown(full_name)}; "
        f"{did_you_mean(full_name, known)}give {listing(known)}"
    )


def _check_size(suite: Suite, tables: Mapping[str, Table], host: HostInventory) -> None:
    """Counts before anything is multiplied out: a grid can ask for more than memory holds."""
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
    """The values of each parameter of the grid, `all` spelt out, without duplicates."""
    axes = {}
    for name, asked in entry.grid.items():
        if name in entry.params:
            raise UsageError(f"{name} stands in params and in grid; remove one of them")
        param = known_param(workload, name)
        values = [asked] if isinstance(asked, str) else asked
        spelt = itertools.chain.from_iterable(
            _spelt_out(workload, param, value, host) for value in values
        )
        axes[name] = tuple(dict.fromkeys(spelt))
    if all(_lacks_gpu(workload, device, host) for device in _devices_asked(entry, axes)):
        # None of its cases can run: the first one says why.
        return {name: values[:1] for name, values in axes.items()}
    return axes


def _devices_asked(
    entry: SuiteCase, axes: Mapping[str, Sequence[ParamValue]]
) -> Sequence[ParamValue]:
    return axes.get(DEVICE) or [entry.params.get(DEVICE, FIRST_GPU)]


def _lacks_gpu(workload: Workload, device: ParamValue, host: HostInventory) -> bool:
    """Whether a case is for the first GPU of a host that was looked at and has none. Where the look
    itself failed nobody knows, and the program is asked."""
    wanted = workload.param(DEVICE) is not None and device == FIRST_GPU
    looked = host.gpus is not None and host.gpus.reason is None
    return wanted and looked and not _gpu_indexes(host)


def _spelt_out(
    workload: Workload, param: Param, value: ParamValue, host: HostInventory
) -> Sequence[ParamValue]:
    """What one value of a grid stands for."""
    if value != ALL:
        return [check_value(param, value, host.allowed_cpus)]
    if param.name == THREADS:
        return [ALL]  # how many that are depends on the other parameters
    if param.name == DEVICE:
        return _gpu_indexes(host) or [FIRST_GPU]
    if param.type != "choice":
        raise UsageError(
            f"{param.name}: all stands for every choice, and {param.name} has none; "
            "give the values one by one"
        )
    words = [word for word in param.words if word != BEST]
    if workload.param(DEVICE) is not None:
        # The table speaks of the first device alone; what another one lacks it says when asked.
        return words
    usable = [word for word in words if word not in param.unsupported]
    # Nothing usable: the program itself says why when it is asked for the first.
    return usable or list(param.words[:1])


def _gpu_indexes(host: HostInventory) -> list[ParamValue]:
    """The GPUs of a host as parameter `device` takes them: by number, so that the same question is
    the same case on every host. A CPU that OpenCL offers too is measured only where it is named."""
    devices = () if host.gpus is None else host.gpus.devices
    return [str(device.index) for device in devices if device.type != "cpu"]


def _combinations(
    entry: SuiteCase, workload: Workload, host: HostInventory
) -> Iterator[dict[str, ParamValue]]:
    axes = _axes(entry, workload, host)
    for values in itertools.product(*axes.values()):
        yield {**entry.params, **dict(zip(axes, values, strict=True))}


def _with_target(
    asked: dict[str, ParamValue], workload: Workload, *, far_host: bool
) -> dict[str, ParamValue]:
    """Where the far end is as a word that says so: on one host and between two it is not the same
    case."""
    param = workload.param(TARGET)
    if param is None or asked.get(TARGET, param.default) != AUTO:
        return asked
    return {**asked, TARGET: FAR_HOST if far_host else LOOPBACK}


def _planned(
    suite: Suite,
    entry: SuiteCase,
    workload: Workload,
    block: int,
    asked: Mapping[str, ParamValue],
    host: HostInventory,
) -> PlannedCase:
    checked = _with_threads(check_params(workload, asked, host.allowed_cpus), workload, host)
    given = {param.name: checked[param.name] for param in workload.params if param.name in checked}
    params = _full_params(workload, given)
    trial_time_s = _trial_time_s(workload, params)
    timeout_s = entry.timeout_s or _timeout_s(workload, params, trial_time_s)
    peers = () if workload.naive else _peers(suite, entry, params)
    # Of a fixed work nobody knows how long it takes, nor how long its peers do.
    elapsed_s = (trial_time_s or 0.0) - TRIAL_OVERHEAD_S - _setup_s(workload, params)
    peers_time_s = sum(peer.trial_time_s(max(0.0, elapsed_s)) for peer in peers)
    if _lacks_gpu(workload, given.get(DEVICE, FIRST_GPU), host):
        # The program says so at once, and nothing is measured beside that.
        trial_time_s = peers_time_s = 0.0
    return PlannedCase(
        case=case_hash(entry.workload, params),
        workload=entry.workload,
        params=params,
        given=tuple(given),
        label=_label(entry, given),
        block=block,
        repeats=entry.repeats.applied_to(suite.repeats),
        trial_time_s=trial_time_s,
        timeout_s=timeout_s,
        peers=tuple(peer.tool for peer in peers),
        peers_time_s=peers_time_s,
        naive=workload.naive,
    )


def _one_of(earlier: PlannedCase | None, later: PlannedCase) -> PlannedCase:
    """A case that two entries ask for: as the first one says, with the peers of both. Where one of
    them needs what the other can do without, it is needed."""
    if earlier is None or (earlier.skip is not None and later.skip is None):
        return later
    added = [tool for tool in later.peers if tool not in earlier.peers]
    if not added:
        return earlier
    # What each tool takes stands in no plan: those that both name are counted twice.
    peers_time_s = earlier.peers_time_s + later.peers_time_s
    return earlier.model_copy(
        update={"peers": (*earlier.peers, *added), "peers_time_s": peers_time_s}
    )


def _skipped(case: PlannedCase) -> PlannedCase:
    """A case that needs a second host where there is none."""
    return case.model_copy(
        update={"skip": NO_FAR_HOST, "trial_time_s": 0.0, "peers": (), "peers_time_s": 0.0}
    )


def _peers(suite: Suite, entry: SuiteCase, params: Mapping[str, ParamValue]) -> tuple[Peer, ...]:
    choice = suite.peers if entry.peers is None else entry.peers
    return chosen_peers(choice, *split_workload(entry.workload), params)


def _check_named_peers(entry: SuiteCase, cases: Sequence[PlannedCase]) -> None:
    """A tool that an entry names and that fits none of its cases was a misunderstanding; what a
    suite names for all its entries need not fit each of them."""
    named = entry.peers if isinstance(entry.peers, list) else []
    cases = [case for case in cases if case.skip is None]
    for tool in named:
        if cases and not any(tool in case.peers for case in cases):
            raise UsageError(
                f"peer {tool} measures nothing like this; "
                "leave it out (docs/peers.md lists what stands beside what)"
            )


def _with_threads(
    given: dict[str, ParamValue], workload: Workload, host: HostInventory
) -> dict[str, ParamValue]:
    """`threads` as a number, so that the case says what it is on whatever host: one for each CPU
    given, else one for each CPU allowed, as the programs do. Where the default is a number, it is
    as many unless `all` is asked for."""
    param = workload.param(THREADS)
    if param is None or given.get(THREADS, param.default) != ALL:
        return given
    cpus = given.get("cpus")
    count = len(host.allowed_cpus) if cpus is None else cpu_count(str(cpus))
    return {**given, THREADS: count}


def _full_params(workload: Workload, given: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Every request parameter that has a value: given, else the default."""
    params: dict[str, ParamValue] = {}
    for param in workload.params:
        if param.name in given:
            params[param.name] = given[param.name]
        elif param.scope == "request" and param.default is not None:
            params[param.name] = param.default
    if DURATION not in given and any(name in given for name in FIXED_WORK):
        params.pop(DURATION, None)
    return params


def case_hash(full_name: str, params: Mapping[str, ParamValue]) -> str:
    """The identity of a case: the same for the same workload and parameters, in any order, today
    and on any host. 2 and 2.0 are the same value."""
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }
    text = json.dumps([full_name, plain], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:CASE_HASH_DIGITS]


def _label(entry: SuiteCase, given: Mapping[str, ParamValue]) -> str:
    """What tells this case from its neighbours: `fp64 avx2 2 threads`."""
    words = [entry.label] if entry.label else []
    for name, value in given.items():
        if name in _UNLABELLED or (entry.label and name not in entry.grid):
            continue
        words.append(param_word(name, value))
    return " ".join(words)


def param_word(name: str, value: object) -> str:
    """How a parameter is called in a label: `2 threads`, `avx2`, `size 4 KiB`, `device 1`,
    `lock each`, `nb=192`."""
    if name in _COUNTED:
        return f"1 {_COUNTED[name]}" if value == 1 else f"{value} {_COUNTED[name]}s"
    if name == DEVICE or (isinstance(value, str) and value in _UNTOLD):
        return f"{name} {value}"
    if name.endswith(BYTES):
        said = exact_bytes(value) if isinstance(value, int) else value
        return f"{name.removesuffix(BYTES)} {said}"
    return value if isinstance(value, str) and value[:1].isalpha() else f"{name}={value}"


def _trial_time_s(workload: Workload, params: Mapping[str, ParamValue]) -> float | None:
    duration_s, warmup_s = params.get("duration_s"), params.get("warmup_s", 0.0)
    if not isinstance(duration_s, int | float) or not isinstance(warmup_s, int | float):
        return None
    return float(duration_s + warmup_s + _setup_s(workload, params) + TRIAL_OVERHEAD_S)


def _setup_s(workload: Workload, params: Mapping[str, ParamValue]) -> float:
    """What each trial takes before its warm-up, about, such as for filling and checking memory. The
    file of a job is filled by the first of its trials and kept for all others."""
    if takes_scratch(workload):
        return 0.0
    size = params.get(SIZE)
    if isinstance(size, str) or size is None or not workload.setup_s_per_byte:
        return workload.setup_s
    return size * workload.setup_s_per_byte


def _setup_timeout_s(workload: Workload, params: Mapping[str, ParamValue]) -> float:
    """What filling memory or a file may take; 0 of a workload that has nothing to fill."""
    if not workload.setup_s:
        return 0.0
    param, size = workload.param(FILE_BYTES), params.get(FILE_BYTES)
    if param is None or not isinstance(param.default, int) or not isinstance(size, int | float):
        return SETUP_TIMEOUT_S
    return max(SETUP_TIMEOUT_S, SLOW_DISK_FACTOR * workload.setup_s * size / param.default)


def _timeout_s(
    workload: Workload, params: Mapping[str, ParamValue], trial_time_s: float | None
) -> float:
    # A team ends its last problem, however long that takes.
    timeout_s = trial_timeout_s(None if workload.kind == "team" else trial_time_s)
    return min(timeout_s + _setup_timeout_s(workload, params), TRIAL_S_MOST)


def trial_timeout_s(trial_time_s: float | None) -> float:
    """When a trial that should take `trial_time_s` is given up; None: nobody knows."""
    if trial_time_s is None:
        return UNKNOWN_TRIAL_TIMEOUT_S
    return trial_time_s * TIMEOUT_FACTOR + TIMEOUT_EXTRA_S


def metrics_of(
    cases: Iterable[PlannedCase], tables: Mapping[str, Table]
) -> dict[str, tuple[Metric, ...]]:
    """The metrics of every workload that occurs."""
    return {case.workload: find_workload(tables, case.workload).metrics for case in cases}
