"""A virtual machine of this host that runs a benchmark program and ends: there the hypervisor is
this host, so a test can take its time or stop it."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import TimeoutExpired

from hostbench.model.events import EVENT, Event

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = CHECKOUT / "build" / "release"
KERNEL = CHECKOUT / "build" / "guest" / "vmlinuz"
QEMU = "qemu-system-x86_64"
BUSYBOX = Path("/bin/busybox")
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
{script}
/bin/busybox poweroff -f
"""


# An emulated guest knows nothing of stolen time, which it has all the same.
CPU_MODELS = {"kvm": "host", "tcg": "max"}
START_S = 20
# One CPU, and room for a program that needs little.
MACHINE = ("-smp", "1", "-m", "256")


def missing() -> str | None:
    """What a guest needs and this machine lacks; None: nothing."""
    needed = {
        QEMU: shutil.which(QEMU),
        "cpio": shutil.which("cpio"),
        str(BUSYBOX): BUSYBOX.exists(),
        "a kernel (scripts/guest-kernel.sh)": KERNEL.exists(),
    }
    lacking = [name for name, found in needed.items() if not found]
    return f"there is no {', '.join(lacking)}" if lacking else None


def accelerator(directory: Path) -> str:
    """`kvm` if a guest starts with it, else `tcg`, which emulates one: /dev/kvm may be there
    without hardware to run a guest on."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        with (
            Guest(directory, "/program --version", "kvm") as guest,
            contextlib.suppress(TimeoutExpired),
        ):
            if "cpu-bench" in guest.last_words(START_S):
                return "kvm"
    return "tcg"


class Guest:
    """One on CPU 0 of this host, from its start until it is left."""

    def __init__(
        self,
        directory: Path,
        script: str,
        accelerator: str,
        *,
        program: str = "cpu-bench",
        machine: Sequence[str] = MACHINE,
    ) -> None:
        """`directory`: an empty one; `script`: lines of a shell, in which /program is `program`;
        `machine`: options of qemu for CPUs and memory."""
        image = _image(directory, script, PROGRAMS / program)
        model = CPU_MODELS[accelerator]
        command = [
            *("taskset", "-c", "0", QEMU, "-accel", accelerator, "-cpu", model, *machine),
            *("-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"),
            *("-kernel", str(KERNEL), "-initrd", str(image)),
            *("-append", "console=ttyS0 quiet panic=-1"),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.lines: list[str] = []

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def last_words(self, most_s: float) -> str:
        """All that it says until it ends. Raise TimeoutExpired."""
        return self._process.communicate(timeout=most_s)[0]

    def events(self) -> Iterator[Event]:
        """What the program says, until the guest ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if found := re.search(r"\{.*\}", line):
                yield EVENT.validate_json(found[0])

    def suspend(self) -> None:
        """Give it no time at all, and tell it nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)


def _image(directory: Path, script: str, program: Path) -> Path:
    """Its file system, in memory: the program with its libraries, and what starts it."""
    root = directory / "root"
    for name in ("proc", "sys", "dev", "bin"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin/busybox")
    shutil.copy(program, root / "program")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+)", linked):
        target = root / library.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    (root / "init").write_text(INIT.format(script=script))
    (root / "init").chmod(0o755)
    image = directory / "initrd"
    with image.open("wb") as file:
        names = "\0".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        subprocess.run(
            ["cpio", "--quiet", "--null", "--create", "--format=newc"],
            input=names.encode(),
            stdout=file,
            cwd=root,
            check=True,
        )
    return image
