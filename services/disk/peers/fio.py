"""fio: what a disk's figure is held against. It runs in the file of our own trial, with the same
engine, blocks, depth, threads and cache mode, and so for the same quantity.

Like ours it submits one operation at a time (iodepth_batch is 1) and takes every block once before
any twice (its random map). Its buffers have pages of the size of ours.
"""

import shlex

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.pages import HUGE
from hostbench.programs.tools.reading import version
from services.disk.peers.case import (
    COMMIT_TIME,
    HUGE_PAGE_BYTES,
    OPERATIONS,
    RATE,
    Case,
    lacks_file,
    scratch_file,
)
from services.disk.peers.fio_output import Report, read_report

PACKAGE = "fio"
TOOL = "fio"
_DIRECTIONS = {
    "seq_read": "read",
    "seq_write": "write",
    "seq_rw": "rw",
    "rand_read": "randread",
    "rand_write": "randwrite",
    "rand_rw": "randrw",
    "fsync_latency": "write",
}
_ENGINES = {
    "io_uring": "io_uring",
    "io_uring_fixed": "io_uring",
    "libaio": "libaio",
    "psync": "psync",
    "mmap": "mmap",
}
_MIXED = ("rw", "randrw")
_FILE = "FILE"


def peer(workload: str, params: Params) -> Peer | None:
    """Beside whatever it can do as we do."""
    case = Case.of(workload, params)
    return Fio(case) if _has_equal(case) else None


def fio_command(workload: str, params: Params) -> str | None:
    """The command line of fio for the same measurement in a FILE of one's own, to be shown beside
    a case; None where fio has no equal of it."""
    case = Case.of(workload, params)
    if not _has_equal(case):
        return None
    command = (TOOL, *options(case, _FILE), *until(case, case.duration_s), *_LATENCIES)
    return shlex.join(case.pages.command(command) if case.pages.requested == HUGE else command)


def options(case: Case, filename: str) -> tuple[str, ...]:
    """What it is to do, without how long and how to report it."""
    direction = _DIRECTIONS[case.workload]
    found = {
        "name": case.workload,
        "filename": filename,
        "ioengine": _ENGINES[case.engine],
        "rw": direction,
        "bs": str(case.block_bytes),
        "iodepth": str(case.depth),
        "numjobs": str(case.threads),
        "size": str(case.span_bytes),
        "direct": str(int(case.direct)),
    }
    if case.sequential and case.threads > 1:
        found["offset_increment"] = str(case.span_bytes)
    if direction in _MIXED:
        found["rwmixread"] = str(round(case.read_share * 100))
    if case.zipf_theta is not None:
        found["random_distribution"] = f"zipf:{case.zipf_theta:g}"
    if case.rate is not None:
        found["rate_iops"] = str(max(1, round(case.rate / case.threads)))
    if case.compressible > 0:
        found["buffer_compress_percentage"] = str(round(case.compressible * 100))
    if case.pages.requested == HUGE:
        # Of buffers that begin anywhere the first and the last page would be small ones, and the C
        # library asks for huge ones in blocks of 2 MiB and more.
        found["iomem_align"] = str(HUGE_PAGE_BYTES)
    found |= _durability(case)
    if case.engine == "io_uring_fixed":
        found["fixedbufs"] = "1"
    # Threads, as ours are; other blocks with every run, as a cache further down keeps the last.
    return (*(f"--{name}={value}" for name, value in found.items()), "--thread", "--randrepeat=0")


def _durability(case: Case) -> dict[str, str]:
    """How writes reach the disk."""
    if case.commits:
        return {"fdatasync": "1"}
    if case.synced:
        return {"sync": case.cache_mode.partition("+")[2]}
    return {"end_fsync": "1"} if case.cache_mode.endswith("+fsync_end") else {}


# Latencies from before the submission, which is where ours begin.
_LATENCIES = ("--group_reporting", "--lat_percentiles=1", "--clat_percentiles=0")


def until(case: Case, elapsed_s: float) -> tuple[str, ...]:
    """When it ends, as our case does: after this time, with its work done, or at the first of
    both. A ramp would fill the page cache: only past it is there one, and where every write is
    flushed and nothing read."""
    if case.total_bytes is not None:
        runtime = (f"--runtime={_milliseconds(elapsed_s)}",) if case.timed else ()
        return (f"--io_size={case.total_bytes // case.threads}", *runtime)
    flushed = case.synced and not case.reads
    ramp = case.direct or case.commits or flushed
    ramp_time = (f"--ramp_time={_milliseconds(case.warmup_s)}",) if ramp and case.warmup_s else ()
    return ("--time_based", f"--runtime={_milliseconds(elapsed_s)}", *ramp_time)


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


def _has_equal(case: Case) -> bool:
    """Whether fio can do it. It checks blocks of its own making only, its mmap engine knows no
    flush for each write, and it mixes in whole percents."""
    return (
        case.workload in _DIRECTIONS
        and case.engine in _ENGINES
        and not case.verify
        and not (case.engine == "mmap" and case.cache_mode != "buffered")
        and (_DIRECTIONS[case.workload] not in _MIXED or _is_whole(case.read_share * 100))
    )


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-6


class Fio(Peer):
    """One job, or one for each of our threads."""

    tool = TOOL
    package = PACKAGE
    # It looks every quarter of a second whether its jobs have ended.
    overhead_s = 0.5
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.title = _DIRECTIONS[case.workload]
        self.unit, self.metric, quantity = _quantity(case)
        self.measures = f"{quantity}, whole run, in the file of our trial with as many threads"
        if case.rate is not None:
            # How much is done is given; how long it takes is counted from the submission there.
            self.metric = None

    def trial_time_s(self, elapsed_s: float) -> float:
        return elapsed_s + self._case.warmup_s + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"fio-([\d.]+)")
        engine = _ENGINES[self._case.engine]
        engines = ask((TOOL, "--enghelp")).split()
        unsupported = None
        if engines and engine not in engines:
            unsupported = f"{TOOL} {found or ''} has no engine {engine}"
        unsupported = lacks_file(self._case, beside) or unsupported
        return self._case.pages.with_conditions(Survey(found, unsupported=unsupported), ask)

    def command(self, beside: Beside) -> Command:
        requested = options(self._case, scratch_file(beside))
        # It neither makes nor extends a file: ours is there, and as large as it is to be.
        requested += (*until(self._case, beside.elapsed_s), "--allow_file_create=0")
        report = (*_LATENCIES, "--output-format=json")
        arguments = on_cpus(beside.cpus, TOOL, *requested, *report, *_placed(beside))
        return Command(self._case.pages.command(arguments))

    def parse(self, output: str, beside: Beside) -> float:
        report = read_report(output)
        report.check(self._requested())
        if self._case.commits:
            return _commit_time_s(report)
        sequential = self._case.sequential
        return report.bytes_per_second if sequential else report.operations_per_second

    def _requested(self) -> dict[str, str]:
        case = self._case
        return {
            "ioengine": _ENGINES[case.engine],
            "rw": self.title,
            "bs": str(case.block_bytes),
            "iodepth": str(case.depth),
            "numjobs": str(case.threads),
            "direct": str(int(case.direct)),
        }


def _placed(beside: Beside) -> tuple[str, ...]:
    """Each of its jobs on a CPU of its own, in turn, as our threads are."""
    if beside.threads == 1:
        return ()
    cpus = ",".join(str(cpu) for cpu in sorted(set(beside.cpus)))
    return (f"--cpus_allowed={cpus}", "--cpus_allowed_policy=split")


def _quantity(case: Case) -> tuple[str, str, str]:
    """Unit, metric of ours and a sentence's beginning."""
    if case.commits:
        return "s", COMMIT_TIME, "median time of a write and median time of its fdatasync, added"
    if case.sequential:
        return "byte/s", RATE, "bytes per second"
    return "operation/s", OPERATIONS, "operations per second"


def _commit_time_s(report: Report) -> float:
    """fio tells of writes and flushes apart; a buffered write takes next to nothing of the two."""
    write_s, sync_s = report.write.latency_p50_s, report.sync.latency_p50_s
    if write_s is None or sync_s is None:
        raise BadOutput("no percentiles of writes and of sync in its output")
    return write_s + sync_s
