"""CPU times of /proc/stat."""

from dataclasses import dataclass

# proc_stat(5): user nice system idle iowait irq softirq steal; guest time is inside user and nice.
_USER, _NICE, _IDLE, _IOWAIT, _STEAL, _FIELDS = 0, 1, 3, 4, 7, 8


@dataclass(frozen=True)
class CpuTimes:
    """Clock ticks since boot of one CPU, or of all together. `user` counts only programs' own code,
    not the kernel's work for them."""

    total: int
    idle: int
    steal: int
    user: int = 0

    @property
    def busy(self) -> int:
        """Clock ticks since boot in which something ran on the CPU."""
        return self.total - self.idle - self.steal

    def ratios(self, before: "CpuTimes") -> tuple[float, float] | None:
        """Return the busy and the stolen share since `before`, or None when no tick has passed."""
        total = self.total - before.total
        if total <= 0:
            return None
        steal = max(0, self.steal - before.steal)
        return self.busy_since(before) / total, steal / total

    def busy_since(self, before: "CpuTimes") -> int:
        """Return the clock ticks since `before` in which something ran on the CPU."""
        steal = max(0, self.steal - before.steal)
        return max(0, self.total - before.total - (self.idle - before.idle) - steal)


def parse_cpu_times(text: str) -> dict[str, CpuTimes]:
    """Return the CPU times by name (`cpu` for all, `cpu0`) from the text of /proc/stat."""
    times = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if not name.startswith("cpu"):
            break
        ticks = [int(field) for field in fields[:_FIELDS]]
        ticks += [0] * (_FIELDS - len(ticks))
        times[name] = CpuTimes(
            total=sum(ticks),
            idle=ticks[_IDLE] + ticks[_IOWAIT],
            steal=ticks[_STEAL],
            user=ticks[_USER] + ticks[_NICE],
        )
    return times
