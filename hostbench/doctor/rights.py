"""What this process may do: capabilities, resource limits, its own priority."""

import re
from collections.abc import Iterable

from hostbench.base.units import human
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
    unreadable,
)
from hostbench.doctor.view import Reading, View, number
from hostbench.host.inventory import cgroup_groups

LIMITS = "/proc/self/limits"
# What a default container refuses without them, or a large locked buffer needs.
CAPABILITIES = {"SYS_NICE": 23, "IPC_LOCK": 14}
INITIAL_USER_NAMESPACE = ("0", "0", "4294967295")
OPEN_FILES_LEAST = 1024
# 32 requests of 1 MiB in registered buffers, twice.
LOCKED_BYTES_LEAST = 64 << 20
# The most threads of a request (docs/kernel-protocol.md), and a few more.
THREADS_MOST, THREADS_MORE = 4096, 64
BATCH_POLICIES = {3: "SCHED_BATCH", 5: "SCHED_IDLE"}


def capabilities(view: View) -> Outcome:
    """SYS_NICE and IPC_LOCK: placing memory on nodes, locking it."""
    status = view.read("/proc/self/status")
    held = {name: view.has_capability(bit) for name, bit in CAPABILITIES.items()}
    if None in held.values():
        return unreadable(status)
    seen = status.excerpt(f"CapEff {view.status('CapEff')}")
    missing = [name for name, has in held.items() if not has]
    if missing:
        text = f"without {' and '.join(missing)}: placing or locking memory may be refused"
        added = " ".join(f"--cap-add {name}" for name in missing)
        advice = Advice(f"docker run {added}; elsewhere, run as root", Reach.STARTED)
        return notice(text, seen, advice=advice)
    users = view.read("/proc/self/uid_map")
    if users.text is not None and tuple(users.text.split()) != INITIAL_USER_NAMESPACE:
        text = "held only inside a user namespace: most of the kernel does not count them"
        return notice(text, seen, users)
    return ok(f"{' and '.join(CAPABILITIES)} are held", seen)


def open_files(view: View) -> Outcome:
    """How many files and sockets may be open."""
    reading = view.read(LIMITS)
    soft, hard = _limit(reading, "Max open files")
    if soft is None:
        return unreadable(reading)
    seen = reading.excerpt(f"Max open files: soft {soft}, hard {hard}")
    if _below(soft, OPEN_FILES_LEAST):
        text = f"{soft}: many streams or files at once do not fit"
        return notice(text, seen, advice=Advice(f"ulimit -n {hard}", Reach.OWN))
    return ok(soft, seen)


def locked_memory(view: View) -> Outcome:
    """How much memory may be locked."""
    reading = view.read(LIMITS)
    soft, hard = _limit(reading, "Max locked memory")
    if soft is None:
        return unreadable(reading)
    seen = reading.excerpt(f"Max locked memory: soft {soft}, hard {hard} bytes")
    size = soft if number(soft) is None else human(float(soft), "byte")
    if view.has_capability(CAPABILITIES["IPC_LOCK"]):
        return ok(f"{size}, which does not bind with IPC_LOCK", seen)
    if _below(soft, LOCKED_BYTES_LEAST):
        text = f"{size}: io_uring cannot register large buffers"
        action = "ulimit -l unlimited, as root; docker run --ulimit memlock=-1"
        advice = Advice(action, Reach.STARTED)
        return notice(text, seen, advice=advice)
    return ok(size, seen)


def process_count(view: View) -> Outcome:
    """How many threads may be created."""
    reading = view.read(LIMITS)
    soft, hard = _limit(reading, "Max processes")
    if soft is None:
        return unreadable(reading)
    seen = [reading.excerpt(f"Max processes: soft {soft}, hard {hard}")]
    groups = [view.path_of(group) for group in cgroup_groups(view.root, "pids")]
    readings = [view.read(f"{group}/pids.max") for group in groups]
    seen += [one.evidence for one in readings if one.number is not None]
    bounds = [one for one in (number(soft), *(one.number for one in readings)) if one is not None]
    least = min(bounds, default=None)
    needed = len(view.allowed_cpus or view.host.allowed_cpus) + THREADS_MORE
    advice = Advice(f"ulimit -u {hard}; docker run --pids-limit -1", Reach.STARTED)
    if least is None:
        return ok("unlimited", *seen)
    if least < needed:
        text = f"{least}: a thread for every CPU may not fit beside all that runs"
        return problem(text, *seen, advice=advice)
    if least < THREADS_MOST + THREADS_MORE:
        return notice(f"{least}: not enough for threads={THREADS_MOST}", *seen, advice=advice)
    return ok(str(least), *seen)


def _limit(reading: Reading, name: str) -> tuple[str | None, str | None]:
    """Return the soft and the hard limit: proc_pid_limits(5)."""
    match = re.search(rf"^{name}\s+(\d+|unlimited)\s+(\d+|unlimited)", reading.text or "", re.M)
    return (match[1], match[2]) if match else (None, None)


def _below(limit: str, least: int) -> bool:
    value = number(limit)
    return value is not None and value < least


def priority(view: View) -> Outcome:
    """Whether this process has a lower priority than others."""
    stat = view.read("/proc/self/stat")
    # The command is in parentheses and may contain any character.
    fields = (stat.text or "").rpartition(")")[2].split()
    nice, policy = (number(_field(fields, index)) for index in (19, 41))
    if nice is None or policy is None:
        return unreadable(stat)
    seen = stat.excerpt(f"nice {nice}, policy {policy}")
    if nice > 0 or policy in BATCH_POLICIES:
        what = BATCH_POLICIES.get(policy, f"nice {nice}")
        text = f"{what}: any other program goes first"
        advice = Advice("start hostbench without nice, chrt or a low-priority service", Reach.OWN)
        return notice(text, seen, advice=advice)
    if policy:
        return unknown(f"policy {policy} is not an ordinary one", seen)
    return ok("ordinary" if nice == 0 else f"nice {nice}", seen)


def _field(fields: Iterable[str], index: int) -> str | None:
    """Return a field by its number in proc_pid_stat(5). The first field after the command is the
    third."""
    after_command = list(fields)
    return after_command[index - 3] if len(after_command) > index - 3 else None


CHECKS = (
    Check("capabilities", Topic.RIGHTS, "Capabilities", ("mem", "disk"), capabilities),
    Check("open_files", Topic.RIGHTS, "Open files", ("disk", "net"), open_files),
    Check(
        "locked_memory", Topic.RIGHTS, "Locked memory", ("mem", "disk", "net", "gpu"), locked_memory
    ),
    Check(
        "process_count",
        Topic.RIGHTS,
        "Number of threads",
        ("cpu", "mem", "disk", "net"),
        process_count,
    ),
    Check("priority", Topic.RIGHTS, "Own priority", ALL, priority),
)
