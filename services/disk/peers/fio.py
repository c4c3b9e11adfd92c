"""fio: the tool that a disk's figure is compared with. It runs in the file of our own trial, with
the same engine, blocks, depth, threads and cache mode, so it measures the same quantity.

Like ours, it submits one operation at a time (iodepth_batch is 1) and uses every block once before
any twice (its random map). Its buffers have pages of the same size as ours.
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
    """Return a peer for every case that fio can do as we do."""
    case = Case.of(workload, params)
    return Fio(case) if _has_equal(case) else None


def fio_command(workload: str, params: Params) -> str | None:
    """Return the command line of fio for the same measurement in the user's own FILE, shown beside
    a case; None if fio has no equivalent."""
    case = Case.of(workload, params)
    if not _has_equal(case):
        return None
    command = (TOOL, *options(case, _FILE), *until(case, case.duration_s), *_LATENCIES)
    return shlex.join(case.pages.command(command) if case.pages.requested == HUGE else command)


def options(case: Case, filename: str) -> tuple[str, ...]:
    """Return what fio does, without how long and how it reports."""
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
        # In buffers that begin anywhere, the first and the last page would be small ones, and the C
        # library requests huge pages in blocks of 2 MiB and more.
        found["iomem_align"] = str(HUGE_PAGE_BYTES)
    found |= _durability(case)
    if case.engine == "io_uring_fixed":
        found["fixedbufs"] = "1"
    # Threads, like ours; other blocks in every run, because a lower cache keeps the last ones.
    return (*(f"--{name}={value}" for name, value in found.items()), "--thread", "--randrepeat=0")


def _durability(case: Case) -> dict[str, str]:
    """Return how writes reach the disk."""
    if case.commits:
        return {"fdatasync": "1"}
    if case.synced:
        return {"sync": case.cache_mode.partition("+")[2]}
    return {"end_fsync": "1"} if case.cache_mode.endswith("+fsync_end") else {}


# Latencies from before the submission, as ours.
_LATENCIES = ("--group_reporting", "--lat_percentiles=1", "--clat_percentiles=0")


def until(case: Case, elapsed_s: float) -> tuple[str, ...]:
    """Return when it ends, like our case: after this time, with its work done, or at the first of
    both.

    A ramp would fill the page cache, so it is only used past the cache, and where every write is
    flushed and nothing is read.
    """
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
    """Whether fio can do it. It only checks blocks of its own making, its mmap engine has no flush
    for each write, and it mixes in whole percents."""
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
    # It checks every quarter of a second whether its jobs have ended.
    overhead_s = 0.5
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.title = _DIRECTIONS[case.workload]
        self.unit, self.metric, quantity = _quantity(case)
        self.measures = f"{quantity}, whole run, in the file of our trial with as many threads"
        if case.rate is not None:
            # The amount of work is given; fio counts the time from the submission.
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
        # It neither creates nor extends a file: ours exists and has its final size.
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
    """Return the options that place each of its jobs on a CPU of its own, in turn, like our
    threads."""
    if beside.threads == 1:
        return ()
    cpus = ",".join(str(cpu) for cpu in sorted(set(beside.cpus)))
    return (f"--cpus_allowed={cpus}", "--cpus_allowed_policy=split")


def _quantity(case: Case) -> tuple[str, str, str]:
    """Return the unit, our metric, and the beginning of a sentence."""
    if case.commits:
        return "s", COMMIT_TIME, "median time of a write and median time of its fdatasync, added"
    if case.sequential:
        return "byte/s", RATE, "bytes per second"
    return "operation/s", OPERATIONS, "operations per second"


def _commit_time_s(report: Report) -> float:
    """Return the time of a commit. fio reports writes and flushes separately; a buffered write
    takes almost nothing of it."""
    write_s, sync_s = report.write.latency_p50_s, report.sync.latency_p50_s
    if write_s is None or sync_s is None:
        raise BadOutput("no percentiles of writes and of sync in its output")
    return write_s + sync_s
