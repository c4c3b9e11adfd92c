"""What `hostbench doctor` checks for the mem subsystem only."""

from hostbench.base.units import human
from hostbench.doctor.check import (
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    unknown,
)
from hostbench.doctor.installed import peers_installed
from hostbench.doctor.view import View
from hostbench.host.memory import BANDWIDTH_VARIABLE, TABLE
from hostbench.model.doctor import Evidence
from hostbench.model.host import Memory
from services.mem.peers import PACKAGES


def memory_channels(view: View) -> Outcome:
    """Whether the bandwidth limit is known, and whether all channels have memory."""
    memory = view.host.memory or Memory()
    if memory.user_bytes_per_second is not None:
        rated = Evidence(source=BANDWIDTH_VARIABLE, value=f"{memory.user_bytes_per_second:g}")
        return ok(f"set by you: {human(memory.user_bytes_per_second, 'byte/s')}", rated)
    if memory.channels is None:
        reason = memory.channels_reason or "not looked at"
        advice = Advice(f"{BANDWIDTH_VARIABLE}=… in byte/s, from the data sheet", Reach.OWN)
        seen = Evidence(source=f"/{TABLE}", reason="has nothing to go by")
        return unknown(f"limits will be empty: {reason}", seen, advice=advice)
    seen = Evidence(source=f"/{TABLE}", value=memory.channels_source)
    count = sum(one.count for one in memory.channels)
    rate = human(sum(one.bytes_per_second for one in memory.channels), "byte/s")
    if memory.channels_wired is not None and count < memory.channels_wired:
        text = f"{count} of {memory.channels_wired} are populated, which transfer {rate} at most"
        return notice(text, seen, advice=Advice("memory for every channel", Reach.MACHINE))
    if len(memory.channels) > 1:
        return notice(f"they are not alike; all together transfer {rate} at most", seen)
    return ok(f"{count}, which transfer {rate} at most", seen)


def mem_peers(view: View) -> Outcome:
    """Whether the tools are installed that figures can be compared with."""
    del view
    return peers_installed(PACKAGES)


CHECKS = (
    Check("memory_channels", Topic.MEMORY, "Memory channels", ("mem",), memory_channels),
    Check("mem_peers", Topic.INSTALLATION, "Peers of memory", ("mem",), mem_peers),
)
