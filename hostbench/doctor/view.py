"""What checks can read: small files below a root, and what was collected before they run."""

import functools
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.files import cpu_list
from hostbench.doctor.calls import Calls
from hostbench.doctor.observation import Observation
from hostbench.model.doctor import Evidence
from hostbench.model.host import HostInventory

MOST_BYTES = 1 << 20
SHOWN_CHARACTERS = 160
# include/linux/proc_ns.h: PROC_PID_INIT_INO.
INITIAL_PID_NAMESPACE = "pid:[4026531836]"
_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)


def one_line(text: str) -> str:
    """Return `text` for a report: printable, on one line, cut when it is long."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def number(text: str | None) -> int | None:
    """Return a whole number, or None for anything else."""
    match = _WHOLE.fullmatch(text.strip()) if text else None
    return int(match[0]) if match else None


@dataclass(frozen=True)
class Reading:
    """The content of a file: `text`, stripped; or None, with the reason."""

    path: str
    text: str | None
    reason: str | None = None

    @property
    def number(self) -> int | None:
        """The whole number it holds, or None."""
        return number(self.text)

    @property
    def evidence(self) -> Evidence:
        """The reading as the report shows it."""
        if self.text is None:
            return Evidence(source=self.path, reason=self.reason)
        return Evidence(source=self.path, value=one_line(self.text))

    def excerpt(self, value: str) -> Evidence:
        """Return evidence that quotes `value`, the part of a longer file that matters."""
        return Evidence(source=self.path, value=one_line(value))


@dataclass(frozen=True)
class Tally:
    """How often each value occurs in the files of one pattern, for example one file for each
    CPU."""

    pattern: str
    readings: tuple[Reading, ...]

    @property
    def values(self) -> Counter[str]:
        """The count of each readable value."""
        return Counter(reading.text for reading in self.readings if reading.text)

    @property
    def numbers(self) -> list[int]:
        """The values that are whole numbers."""
        return [reading.number for reading in self.readings if reading.number is not None]

    def __str__(self) -> str:
        return ", ".join(sorted(self.values))

    @property
    def evidence(self) -> Evidence:
        """The values as the report shows them."""
        if self.values:
            counted = (f"{value} ({count})" for value, count in sorted(self.values.items()))
            return Evidence(source=self.shown_pattern, value=one_line(", ".join(counted)))
        reasons = [reading.reason for reading in self.readings if reading.reason]
        reason = reasons[0] if reasons else "no such file"
        return Evidence(source=self.shown_pattern, reason=reason)

    @property
    def shown_pattern(self) -> str:
        """The pattern for people: `cpu*` instead of `cpu[0-9]*`."""
        return self.pattern.replace("[0-9]*", "*")


def read(root: Path, path: str) -> Reading:
    """Return the file that a running host has at `path`, which begins with a slash."""
    try:
        with (root / path.lstrip("/")).open("rb") as file:
            content = file.read(MOST_BYTES)
    except OSError as error:
        return Reading(path, None, (error.strerror or "cannot be read").lower())
    return Reading(path, content.decode("utf-8", "replace").strip())


def find(root: Path, pattern: str) -> list[str]:
    """Return the paths that match, in order."""
    try:
        found = [path.relative_to(root) for path in root.glob(pattern.lstrip("/"))]
    except OSError:
        return []
    return sorted(f"/{path}" for path in found)


@dataclass(frozen=True)
class KernelConfig:
    """The configuration that the kernel was built with, and the file that has it."""

    path: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class View:
    """One host as the checks see it.

    `root` stands for / in tests; `results` and `scratch` are the directories of those names and
    never below it. `observation` None: the host was not watched, so what depends on that is
    unknown.
    """

    root: Path
    host: HostInventory
    results: Path
    scratch: Path
    calls: Calls
    observation: Observation | None = None

    def read(self, path: str) -> Reading:
        """Return the file at `path`."""
        return read(self.root, path)

    def find(self, pattern: str) -> list[str]:
        """Return the paths that match."""
        return find(self.root, pattern)

    def tally(self, pattern: str) -> Tally:
        """Return the contents of the files of a pattern."""
        return Tally(pattern, tuple(self.read(path) for path in self.find(pattern)))

    def path_of(self, path: Path) -> str:
        """Return a path below the root, as the host knows it."""
        return f"/{path.relative_to(self.root)}"

    @property
    def may_be_virtual(self) -> bool:
        """Whether this may be a virtual machine: not every architecture reports it."""
        return self.host.virtualisation.hypervisor is not False

    @property
    def is_virtual(self) -> bool:
        """Whether the CPU reports that it is virtual."""
        return bool(self.host.virtualisation.hypervisor)

    # ---- this process ----

    def status(self, name: str) -> str | None:
        """Return a field of /proc/self/status."""
        text = self.read("/proc/self/status").text or ""
        match = re.search(rf"^{name}:\s*(.*)$", text, re.MULTILINE)
        return match[1].strip() if match else None

    @property
    def allowed_cpus(self) -> tuple[int, ...] | None:
        """The CPUs this process may use."""
        return cpu_list(self.status("Cpus_allowed_list"))

    def has_capability(self, bit: int) -> bool | None:
        """Whether the capability is in the effective set: capabilities(7)."""
        text = self.status("CapEff")
        if text is None or not re.fullmatch(r"[0-9a-fA-F]{1,16}", text):
            return None
        return bool(int(text, 16) >> bit & 1)

    # ---- the others ----

    @property
    def sees_all_processes(self) -> bool:
        """Whether neither a PID namespace nor hidepid hides any process: namespaces(7), proc(5)."""
        try:
            namespace = (self.root / "proc/self/ns/pid").readlink()
        except OSError:
            return False
        first = self.read("/proc/1/comm").text
        return str(namespace) == INITIAL_PID_NAMESPACE and first is not None

    @functools.cached_property
    def commands(self) -> frozenset[str]:
        """The commands of all visible processes, cut to 15 characters by the kernel."""
        return frozenset(self.tally("/proc/[0-9]*/comm").values)

    # ---- the kernel ----

    @functools.cached_property
    def kernel_config(self) -> KernelConfig | None:
        """The kernel's build configuration, if the kernel or the distribution keeps it."""
        paths = ["/proc/config.gz"]
        release = self.read("/proc/sys/kernel/osrelease").text or ""
        if re.fullmatch(r"[\w.+~-]+", release, re.ASCII):
            paths += [f"/boot/config-{release}", f"/lib/modules/{release}/config"]
        for path in paths:
            text = self._config_text(path)
            if text and "CONFIG_" in text:
                found = re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE)
                return KernelConfig(path, dict(found))
        return None

    def _config_text(self, path: str) -> str | None:
        try:
            content = (self.root / path.lstrip("/")).read_bytes()
            if path.endswith(".gz"):
                content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
        return content.decode("utf-8", "replace")
