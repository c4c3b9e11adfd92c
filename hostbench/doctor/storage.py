"""Where results go, and what lies below a disk workload that writes there."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from hostbench.doctor.check import (
    ALL,
    DISK,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    problem,
    unknown,
)
from hostbench.doctor.view import View
from hostbench.models.doctor import Evidence
from hostbench.units import significant

GIB = 1 << 30
# A job of thousands of trials takes some hundreds of MB: TRIAL_BYTES in hostbench/results.py.
FREE_BYTES_LEAST, FREE_BYTES_ENOUGH = 100 << 20, 1 << 30
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})
REMOTE_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "afs", "lustre", "gpfs"}
)
ELSEWHERE = Advice("choose another directory: --results, or HOSTBENCH_RESULTS", Reach.OWN)
DEVICE_UNKNOWN = "the device below the results cannot be told"
STACKED_MOST = 8
MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


def nearest(path: Path) -> Path:
    """The directory itself, or the nearest one above it that exists already."""
    path = path.absolute()
    return next((one for one in (path, *path.parents) if _is_there(one)), Path("/"))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # not there, or behind a directory we may not look into
        return False
    return True


def results_space(view: View) -> Outcome:
    """Whether results can be written, and how much fits."""
    place = nearest(view.results)
    try:
        status = os.statvfs(place)
    except OSError as error:
        return unknown("cannot be read", Evidence(source=str(place), reason=error.strerror))
    free = status.f_bavail * status.f_frsize
    text = f"{significant(free / GIB)} GiB free"
    seen = Evidence(source=f"statvfs({place})", value=f"{free} bytes available")
    if not place.is_dir():
        return problem(f"{place} is not a directory", seen, advice=ELSEWHERE)
    if not os.access(place, os.W_OK | os.X_OK):
        return problem(f"{place} may not be written", seen, advice=ELSEWHERE)
    if free < FREE_BYTES_LEAST:
        return problem(f"{text}: a job may not fit", seen, advice=ELSEWHERE)
    if free < FREE_BYTES_ENOUGH:
        return notice(f"{text}: long jobs may not fit", seen, advice=ELSEWHERE)
    return ok(text, seen)


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo: proc_pid_mountinfo(5)."""

    device: str
    point: str
    kind: str
    source: str

    @property
    def evidence(self) -> Evidence:
        """As it stands in the report."""
        return Evidence(source=MOUNTS, value=f"{self.source} on {self.point} type {self.kind}")


def mount_of(view: View, place: Path) -> Mount | None:
    """The mount that a directory lies on: the last of the longest mount points above it."""
    found: Mount | None = None
    for line in (view.read(MOUNTS).text or "").splitlines():
        mount = _mount(line)
        if mount is None or not place.is_relative_to(mount.point):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def _mount(line: str) -> Mount | None:
    fields = line.split()
    if "-" not in fields or len(fields) < fields.index("-") + 3:
        return None
    kind, source = fields[fields.index("-") + 1 : fields.index("-") + 3]
    point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
    return Mount(device=fields[2], point=point, kind=kind, source=source)


def results_file_system(view: View) -> Outcome:
    """What results lie on, and what a disk workload there would measure."""
    mount = mount_of(view, nearest(view.results).resolve())
    if mount is None:
        return unknown("its mount is not listed", view.read(MOUNTS))
    if mount.kind in MEMORY_FILE_SYSTEMS:
        text = f"{mount.kind}: it is memory, uses it up, and is gone after a restart"
        return notice(text, mount.evidence, advice=ELSEWHERE)
    if mount.kind in REMOTE_FILE_SYSTEMS or mount.kind.startswith("fuse"):
        text = f"{mount.kind}: writing results uses the network or another process"
        return notice(text, mount.evidence, advice=ELSEWHERE)
    if mount.kind == "overlay":
        text = "overlay: a container's own layer, gone with the container"
        advice = Advice("mount a volume for results", Reach.STARTED)
        return notice(text, mount.evidence, advice=advice)
    return ok(mount.kind, mount.evidence)


def _queues(view: View) -> list[str]:
    """The queue directories of the devices below the results, by the device of their mount."""
    mount = mount_of(view, nearest(view.results).resolve())
    if mount is None:
        return []
    base = f"/sys/dev/block/{mount.device}"
    if mount.device.startswith("0:"):  # an anonymous device: btrfs, overlay, network
        name = mount.source.rsplit("/", 1)[-1]
        base = f"/sys/class/block/{name}" if mount.source.startswith("/dev/") else base
    return _queues_below(view, base, STACKED_MOST)


def _queues_below(view: View, device: str, depth: int) -> list[str]:
    """Of the disks that a device is made of: those below LVM, encryption and RAID."""
    parts = view.find(f"{device}/slaves/*") if depth else []
    if parts:
        return [queue for part in parts for queue in _queues_below(view, part, depth - 1)]
    # A partition has no queue of its own; these paths are links into its disk's directory.
    return [f"{device}/queue" if view.find(f"{device}/queue") else f"{device}/../queue"]


def write_cache(view: View) -> Outcome:
    """Whether the device may answer before data are safe."""
    readings = [view.read(f"{queue}/write_cache") for queue in _queues(view)]
    known = [reading for reading in readings if reading.text]
    if not known:
        return unknown(DEVICE_UNKNOWN, *(readings or (view.read(MOUNTS),)))
    if any(reading.text == "write back" for reading in known):
        text = "volatile: writes without fsync measure the device's memory"
        advice = Advice(
            "measure with synced writes; hdparm -W 0 DEVICE switches the cache off", Reach.HARDWARE
        )
        return notice(text, *known, advice=advice)
    return ok("write through", *known)


def io_scheduler(view: View) -> Outcome:
    """Who orders the requests."""
    readings = [view.read(f"{queue}/scheduler") for queue in _queues(view)]
    known = [reading for reading in readings if reading.text]
    names = {match[1] for one in known if (match := re.search(r"\[([\w-]+)\]", one.text or ""))}
    names |= {"none" for reading in known if reading.text == "none"}
    if not names:
        return unknown(DEVICE_UNKNOWN, *(readings or (view.read(MOUNTS),)))
    if names & {"bfq", "cfq"}:
        text = f"{', '.join(sorted(names))}: it trades throughput for fairness"
        advice = Advice(f"echo none > {known[0].path}", Reach.KERNEL)
        return notice(text, *known, advice=advice)
    return ok(", ".join(sorted(names)), *known)


CHECKS = (
    Check("results_space", Topic.STORAGE, "Room for results", ALL, results_space),
    Check(
        "results_file_system",
        Topic.STORAGE,
        "File system of results",
        ALL,
        results_file_system,
    ),
    Check("write_cache", Topic.STORAGE, "Write cache", (DISK,), write_cache),
    Check("io_scheduler", Topic.STORAGE, "I/O scheduler", (DISK,), io_scheduler),
)
