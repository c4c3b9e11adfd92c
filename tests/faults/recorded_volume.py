"""What a command wrote to its results directory, call by call, and what a power cut after any of
these calls may leave there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = "mkdir,openat,write,pwrite64,ftruncate,rename,unlink,rmdir,fsync"
STRACE = ("strace", "-f", "-qq", "-y", "-xx", "-s", "10000000", "-e", f"trace={CALLS}", "-A")

LINE = re.compile(r"(\d+) +(.*)")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)")
UNFINISHED = " <unfinished ...>"
CALL = re.compile(r"(\w+)\((.*)\) += (\d+)")
QUOTED, OPENED, LAST_NUMBER = (
    re.compile(r'"([^"]*)"'),
    re.compile(r"\d+<(.*?)>"),
    re.compile(r"\d+$"),
)
STANDARD_ERROR = re.compile(r"2<")


@dataclass(frozen=True)
class Call:
    """One call of the kernel that did not fail."""

    name: str
    arguments: str

    @property
    def paths(self) -> list[str]:
        """The names it was given, or that of the open file."""
        given = [_plain(text).decode() for text in QUOTED.findall(self.arguments)]
        if self.name in ("mkdir", "rename", "unlink", "rmdir", "openat"):
            return given
        return [_plain(text).decode() for text in OPENED.findall(self.arguments)[:1]]

    @property
    def content(self) -> bytes:
        """What it wrote."""
        return _plain(QUOTED.findall(self.arguments)[0])

    @property
    def offset(self) -> int:
        """Where it wrote, or cut."""
        found = LAST_NUMBER.search(self.arguments)
        assert found is not None, self
        return int(found[0])

    @property
    def message(self) -> bytes:
        """What it printed for the user."""
        is_message = self.name == "write" and STANDARD_ERROR.match(self.arguments)
        return self.content if is_message else b""


def _plain(text: str) -> bytes:
    return re.sub(rb"\\x(..)", lambda match: bytes.fromhex(match[1].decode()), text.encode())


def calls_of(trace: Path) -> Iterator[Call]:
    """The calls of a trace of STRACE, in the order in which they ended."""
    begun: dict[str, str] = {}
    for line in trace.read_text().splitlines():
        matched = LINE.match(line)
        assert matched is not None, line
        process, text = matched.groups()
        if text.endswith(UNFINISHED):
            begun[process] = text.removesuffix(UNFINISHED)
            continue
        if resumed := RESUMED.match(text):
            text = begun.pop(process) + resumed[1]
        if call := CALL.match(text):
            yield Call(call[1], call[2])


@dataclass
class File:
    """A file or a directory: what was written, and the part of it that is on disk for certain."""

    is_directory: bool = False
    written: bytes = b""
    synced: bytes = b""

    def survivors(self) -> dict[str, bytes]:
        """What may be left of it, by what became of the rest."""
        found = {"lost": self.synced, "kept": self.written}
        rest = self.written[len(self.synced) :]
        if rest and self.written.startswith(self.synced):
            half = len(rest) // 2
            found["half"] = self.synced + rest[:half]
            found["zeros behind"] = self.synced + rest[:half] + bytes(len(rest) - half)
            found["zeros before"] = self.synced + bytes(half) + rest[half:]
        return found


@dataclass
class Volume:
    """The files below a directory, by path; `durable`: the names that are on disk for certain."""

    root: str
    names: dict[str, File] = field(default_factory=dict)
    durable: dict[str, File] = field(default_factory=dict)

    def apply(self, call: Call) -> bool:
        """Do what a call did; False: it changed nothing below the directory."""
        paths = call.paths
        below = [f"{path}/".startswith(f"{self.root}/") for path in paths]
        # Its parent holds the name of the root.
        of_root = call.name == "fsync" and paths == [str(Path(self.root).parent)]
        if not paths or not (all(below) or of_root):
            return False
        path = paths[0]
        if call.name == "mkdir":
            self.names[path] = File(is_directory=True)
        elif call.name == "openat":
            return self._open(path, call.arguments)
        elif call.name in ("write", "pwrite64"):
            file = self.names[path]
            at = call.offset if call.name == "pwrite64" else len(file.written)
            file.written = file.written[:at] + call.content + file.written[at + len(call.content) :]
        elif call.name == "ftruncate":
            self.names[path].written = self.names[path].written[: call.offset]
        elif call.name == "rename":
            self.names[paths[1]] = self.names.pop(path)
        elif call.name in ("unlink", "rmdir"):
            del self.names[path]
        else:
            self._sync(path)
        return True

    def _open(self, path: str, flags: str) -> bool:
        creates = "O_CREAT" in flags and path not in self.names
        if creates:
            self.names[path] = File()
        elif "O_TRUNC" in flags:
            self.names[path].written = b""
        return creates or "O_TRUNC" in flags

    def _sync(self, path: str) -> None:
        if path in self.names and not self.names[path].is_directory:
            self.names[path].synced = self.names[path].written
            return
        inside = [one for one in (*self.names, *self.durable) if str(Path(one).parent) == path]
        for one in dict.fromkeys(inside):
            if one in self.names:
                self.durable[one] = self.names[one]
            else:
                del self.durable[one]

    def after_a_power_cut(self) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """What may be there then: the files with their content, None for a directory."""
        for kept, names in (("kept", self.names), ("lost", self.durable)):
            there = {path: file for path, file in names.items() if self._is_reached(path, names)}
            for rest in ("lost", "kept", "half", "zeros behind", "zeros before"):
                content = {
                    path: None if file.is_directory else file.survivors().get(rest, file.written)
                    for path, file in there.items()
                }
                yield f"names that were not synced are {kept}, content {rest}", content

    def _is_reached(self, path: str, names: dict[str, File]) -> bool:
        above = [str(one) for one in Path(path).parents]
        return all(one in names for one in above if f"{one}/".startswith(f"{self.root}/"))
