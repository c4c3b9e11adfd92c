"""The place of results."""

import os
from pathlib import Path

from hostbench.base.units import significant
from hostbench.doctor.check import (
    ALL,
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
from hostbench.host.scratch import MOUNTS, Mount, mount_of, nearest, parse_mounts
from hostbench.model.doctor import Evidence

GIB = 1 << 30
# A job of thousands of trials takes some hundreds of MB: TRIAL_BYTES in hostbench/results/store.py.
FREE_BYTES_LEAST, FREE_BYTES_ENOUGH = 100 << 20, 1 << 30
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})
REMOTE_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "afs", "lustre", "gpfs"}
)
ELSEWHERE = Advice("choose another directory: --results, or HOSTBENCH_RESULTS", Reach.OWN)


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


def mount_below(view: View, place: Path) -> Mount | None:
    """Return the mount of a directory, or the one it will be on when created."""
    return mount_of(parse_mounts(view.read(MOUNTS).text or ""), nearest(place).resolve())


def mount_evidence(mount: Mount) -> Evidence:
    """Return the mount as the report shows it."""
    return Evidence(source=MOUNTS, value=f"{mount.source} on {mount.point} type {mount.kind}")


def results_file_system(view: View) -> Outcome:
    """The file system of results."""
    mount = mount_below(view, view.results)
    if mount is None:
        return unknown("its mount is not listed", view.read(MOUNTS))
    seen = mount_evidence(mount)
    if mount.kind in MEMORY_FILE_SYSTEMS:
        text = f"{mount.kind}: it is memory, uses it up, and is gone after a restart"
        return notice(text, seen, advice=ELSEWHERE)
    if mount.kind in REMOTE_FILE_SYSTEMS or mount.kind.startswith("fuse"):
        text = f"{mount.kind}: writing results uses the network or another process"
        return notice(text, seen, advice=ELSEWHERE)
    if mount.kind == "overlay":
        text = "overlay: a container's own layer, gone with the container"
        advice = Advice("mount a volume for results", Reach.STARTED)
        return notice(text, seen, advice=advice)
    return ok(mount.kind, seen)


CHECKS = (
    Check("results_space", Topic.STORAGE, "Room for results", ALL, results_space),
    Check(
        "results_file_system",
        Topic.STORAGE,
        "File system of results",
        ALL,
        results_file_system,
    ),
)
