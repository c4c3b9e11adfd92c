"""What `hostbench doctor` checks for the disk subsystem only."""

import os
import re

from hostbench.base.errors import ResourceError
from hostbench.base.files import whole_number
from hostbench.base.units import human, significant
from hostbench.doctor.check import (
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
from hostbench.doctor.installed import peers_installed
from hostbench.doctor.storage import REMOTE_FILE_SYSTEMS, mount_below, mount_evidence
from hostbench.doctor.view import Reading, View
from hostbench.host.disk import BANDWIDTH, INFERRED
from hostbench.host.scratch import MOUNTS, VARIABLE, default_directory, nearest, open_directory
from hostbench.model.doctor import Evidence
from services.disk.peers import PACKAGES

GIB = 1 << 30
RESERVE_VARIABLE = "HOSTBENCH_DISK_RESERVE_BYTES"
RESERVE_BYTES, RESERVE_SHARE = 5 * GIB, 0.10
# The default of file_bytes, and the size that takes a minute to write at 170 MB/s.
ROOM_LEAST, ROOM_ENOUGH = 1 * GIB, 10 * GIB
ELSEWHERE = Advice(f"choose another directory: {VARIABLE}", Reach.OWN)
# File systems whose files can be opened with O_DIRECT, past the page cache, if the disk allows it.
DIRECT_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs"})
DEVICE_UNKNOWN = "the device below the scratch directory is unknown"
STACKED_MOST = 8


def scratch_directory(view: View) -> Outcome:
    """Whether disk workloads can have their files in the scratch directory."""
    path = view.scratch
    if path == default_directory() and not os.path.lexists(path):
        above = nearest(path)
        seen = Evidence(source=str(path), reason="no such directory")
        if not os.access(above, os.W_OK | os.X_OK):
            return problem(f"it cannot be made in {above}", seen, advice=ELSEWHERE)
        return ok(f"{path}, which the first run makes", seen)
    try:
        os.close(open_directory(path))
    except ResourceError as error:
        seen = Evidence(source=str(path), reason="not usable")
        return problem(error.message.partition(";")[0], seen, advice=ELSEWHERE)
    seen = Evidence(source=str(path), value="a directory")
    if not os.access(path, os.W_OK | os.X_OK):
        return problem(f"{path} may not be written", seen, advice=ELSEWHERE)
    return ok(str(path), seen)


def scratch_space(view: View) -> Outcome:
    """How large the files of disk workloads may become: the free space minus a reserve."""
    place = nearest(view.scratch)
    try:
        status = os.statvfs(place)
    except OSError as error:
        return unknown("cannot be read", Evidence(source=str(place), reason=error.strerror))
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    given = whole_number(os.environ.get(RESERVE_VARIABLE))
    reserve = max(RESERVE_BYTES, RESERVE_SHARE * size) if given is None else given
    room = max(0, free - reserve)
    seen = Evidence(source=f"statvfs({place})", value=f"{free} bytes available")
    text = f"{significant(room / GIB)} GiB, with {significant(reserve / GIB)} GiB left free"
    if room < ROOM_LEAST:
        return problem(f"{text}: not enough for file_bytes 1 GiB", seen, advice=ELSEWHERE)
    if room < ROOM_ENOUGH:
        return notice(f"{text}: not enough for large files", seen, advice=ELSEWHERE)
    return ok(text, seen)


def direct_io(view: View) -> Outcome:
    """Whether files there can be read and written past the page cache."""
    mount = mount_below(view, view.scratch)
    if mount is None:
        return unknown("its mount is not listed", view.read(MOUNTS))
    seen = mount_evidence(mount)
    if mount.kind in DIRECT_FILE_SYSTEMS:
        return ok(f"{mount.kind} has it", seen)
    if mount.kind in REMOTE_FILE_SYSTEMS or mount.kind.startswith("fuse"):
        text = f"{mount.kind}: the figure is that of a network or of another process"
        return notice(text, seen, advice=ELSEWHERE)
    if mount.kind == "overlay":
        text = "overlay: a container's own layer, whose file system decides"
        return notice(text, seen, advice=Advice("mount a volume for it", Reach.STARTED))
    return unknown(f"{mount.kind}: a trial tells (warning direct_unavailable)", seen)


def disk_limit(view: View) -> Outcome:
    """Whether figures have a limit: the most that the disk, or its link, can do."""
    place = view.host.scratch
    assert place is not None, "the inventory of this host has it"
    if place.user_bytes_per_second is not None:
        rated = Evidence(source=BANDWIDTH.variable, value=f"{place.user_bytes_per_second:g}")
        return ok(f"set by you: {human(place.user_bytes_per_second, 'byte/s')}", rated)
    advice = Advice(f"{BANDWIDTH.variable}=… in byte/s, from the data sheet", Reach.OWN)
    if place.device is None:
        seen = Evidence(source="/sys/dev/block", reason=place.device_reason or "not looked at")
        return unknown("limits will be empty: the disk is not known", seen, advice=advice)
    names = ", ".join(disk.name for disk in place.device.disks)
    if (place.device_source or "").startswith(INFERRED):
        seen = Evidence(source="/sys/dev/block", reason=place.device_source)
        return unknown("limits will be empty: the disk is only guessed", seen, advice=advice)
    link = place.device.link_bytes_per_second
    if link is None:
        seen = Evidence(source=f"/sys/class/block/{names}", reason=place.device.link_reason)
        return unknown("limits will be empty: its link is not known", seen, advice=advice)
    sources = "; ".join(disk.link_source or "" for disk in place.device.disks)
    seen = Evidence(source=f"/sys/class/block/{names}", value=sources)
    return ok(f"the link carries {human(link, 'byte/s')}", seen)


def _queues(view: View) -> list[str]:
    """Return the queue directories of the devices below the scratch directory, found by its
    mount."""
    mount = mount_below(view, view.scratch)
    if mount is None:
        return []
    base = f"/sys/dev/block/{mount.device}"
    if mount.device.startswith("0:"):  # anonymous devices: btrfs, overlay, network
        name = mount.source.rsplit("/", 1)[-1]
        base = f"/sys/class/block/{name}" if mount.source.startswith("/dev/") else base
    return _queues_below(view, base, STACKED_MOST)


def _queues_below(view: View, device: str, depth: int) -> list[str]:
    """Return the queues of the disks that a device consists of: those below LVM, encryption and
    RAID."""
    parts = view.find(f"{device}/slaves/*") if depth else []
    if parts:
        return [queue for part in parts for queue in _queues_below(view, part, depth - 1)]
    # A partition has no queue of its own; these paths are links into its disk's directory.
    return [f"{device}/queue" if view.find(f"{device}/queue") else f"{device}/../queue"]


def _settings(view: View, name: str) -> tuple[list[Reading], Outcome | None]:
    """Return what the queues report for `name`, or that it is unknown."""
    readings = [view.read(f"{queue}/{name}") for queue in _queues(view)]
    known = [reading for reading in readings if reading.text]
    missing = unknown(DEVICE_UNKNOWN, *(readings or (view.read(MOUNTS),)))
    return known, None if known else missing


def write_cache(view: View) -> Outcome:
    """Whether the device may answer before the data are safe."""
    known, missing = _settings(view, "write_cache")
    if missing is not None:
        return missing
    if any(reading.text == "write back" for reading in known):
        text = "volatile: writes without fsync measure the device's memory"
        advice = Advice(
            "measure with synced writes; hdparm -W 0 DEVICE switches the cache off", Reach.HARDWARE
        )
        return notice(text, *known, advice=advice)
    return ok("write through", *known)


def io_scheduler(view: View) -> Outcome:
    """Which scheduler orders the requests."""
    known, missing = _settings(view, "scheduler")
    names = {match[1] for one in known if (match := re.search(r"\[([\w-]+)\]", one.text or ""))}
    names |= {"none" for reading in known if reading.text == "none"}
    if missing is not None or not names:
        return missing or unknown(DEVICE_UNKNOWN, *known)
    if names & {"bfq", "cfq"}:
        text = f"{', '.join(sorted(names))}: it trades throughput for fairness"
        advice = Advice(f"echo none > {known[0].path}", Reach.KERNEL)
        return notice(text, *known, advice=advice)
    return ok(", ".join(sorted(names)), *known)


def disk_peers(view: View) -> Outcome:
    """Whether the tools are installed that figures can be compared with."""
    del view
    return peers_installed(PACKAGES)


CHECKS = (
    Check("scratch_directory", Topic.SCRATCH, "Scratch directory", ("disk",), scratch_directory),
    Check("scratch_space", Topic.SCRATCH, "Room for files", ("disk",), scratch_space),
    Check("direct_io", Topic.SCRATCH, "Direct I/O", ("disk",), direct_io),
    Check("disk_limit", Topic.SCRATCH, "Limit of the disk", ("disk",), disk_limit),
    Check("write_cache", Topic.SCRATCH, "Write cache", ("disk",), write_cache),
    Check("io_scheduler", Topic.SCRATCH, "I/O scheduler", ("disk",), io_scheduler),
    Check("disk_peers", Topic.INSTALLATION, "Peers of disks", ("disk",), disk_peers),
)
