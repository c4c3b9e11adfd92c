"""An image for pods of real nodes, without a registry: almost empty, for it shows the host's own
programs, which a pod mounts at /usr (`HOST_PROGRAMS`)."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path
from typing import Any

NAME = "hostbench.test/host:1"
# What a pod has to have to run the host's programs: volumes of the pod, mounts of its container.
HOST_PROGRAMS = {
    "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
    "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}],
}
DIRECTORIES = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "var")
LINKS = ("bin", "lib", "lib64", "sbin")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PAUSE = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def make_image(path: Path) -> None:
    """Write the image as `docker save` does. Without a command it waits for ever, so that it
    holds the network of a pod, too."""
    layer = _archive(_layer(_pause(path.parent)))
    config = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"Cmd": ["/pause"], "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    files = {
        "config.json": config,
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    path.write_bytes(_archive([(_entry(name, size=len(has)), has) for name, has in files.items()]))


def _layer(pause: bytes) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [
        *((_entry(name, type=tarfile.DIRTYPE, mode=0o755), b"") for name in DIRECTORIES),
        *((_entry(name, type=tarfile.SYMTYPE, linkname=f"usr/{name}"), b"") for name in LINKS),
        (_entry("pause", mode=0o755, size=len(pause)), pause),
    ]


def _pause(directory: Path) -> bytes:
    program = directory / "pause"
    subprocess.run(
        ["gcc", "-static", "-Os", "-s", "-x", "c", "-", "-o", program],
        input=PAUSE,
        text=True,
        check=True,
    )
    return program.read_bytes()


def _entry(name: str, **fields: Any) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


def _archive(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
