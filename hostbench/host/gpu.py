"""The GPUs of this host, for the inventory: those that gpu-bench finds through the drivers, with
their PCI Express links from sysfs. What cannot be read is None, never an error."""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from hostbench.base.errors import ResourceError
from hostbench.base.place import REBUILD
from hostbench.host import pcie
from hostbench.model.host import Gpu, GpuFacts, Gpus, PcieLink, Virtualisation
from hostbench.programs.program import find_program, output_of

GUEST = "this is a virtual machine, and the link that it sees may not be real"
# Device files of GPU drivers: NVIDIA's, AMD's for computing, all that draw, WSL's.
DEVICE_FILES = ("dev/nvidiactl", "dev/kfd", "dev/dri/renderD*", "dev/dxg")
# NVIDIA's driver is loaded: on a host without a display, its first use creates its device files.
LOADED = "proc/driver/nvidia/version"
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)


class OpenclNumbers(BaseModel):
    """The numbers by which OpenCL counts its platforms, and the devices of each."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    platform: int
    device: int


class ListedDevice(GpuFacts):
    """An entry of `gpu-bench --list-devices`. `opencl` None: no OpenCL driver has the device."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    type: str
    opencl: OpenclNumbers | None = None


class DeviceList(BaseModel):
    """The output of `gpu-bench --list-devices`. `looked`: each driver's answer, in one line."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    devices: tuple[ListedDevice, ...]
    looked: tuple[str, ...]


def gpus(root: Path, virtualisation: Virtualisation) -> Gpus:
    """Return the GPUs that this process can use. `root` stands for / in tests."""
    try:
        found = list_devices(find_program("gpu"))
    except ResourceError as error:
        return Gpus(reason=error.message)
    devices = tuple(_gpu(root, one, virtualisation) for one in found.devices)
    return Gpus(devices=devices, looked=found.looked)


def has_driver(root: Path) -> bool:
    """Whether a GPU driver is present: its device files, or NVIDIA's driver before it has any."""
    return any(next(root.glob(pattern), None) is not None for pattern in (*DEVICE_FILES, LOADED))


def list_devices(program: Path) -> DeviceList:
    """Return the program's list of devices. Raise ResourceError when its output makes no sense."""
    output = output_of(program, "--list-devices")
    try:
        return DeviceList.model_validate_json(output)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResourceError(
            f"{program} --list-devices does not print a list of devices: {where}: "
            f"{first['msg']}; {REBUILD}"
        ) from None


def _gpu(root: Path, one: ListedDevice, virtualisation: Virtualisation) -> Gpu:
    link, reason = device_link(root, one.pci, virtualisation)
    # OpenCL does not report ECC, so its silence does not mean "off".
    facts = one.model_dump(exclude={"opencl"}) | ({} if one.backend == "cuda" else {"ecc": None})
    return Gpu(**facts, link=link, link_reason=reason)


def device_link(
    root: Path, pci: str | None, virtualisation: Virtualisation
) -> tuple[PcieLink | None, str | None]:
    """Return the link of the device at a PCI address, or why it is unknown."""
    address = (pci or "").lower()
    if not _PCI.fullmatch(address):
        return None, "its driver reports no PCI address"
    device = root / "sys/bus/pci/devices" / f"{address[-12:]}"
    link = pcie.link(device)
    if link is None:
        return None, f"{pci}: sysfs does not show its link (current_link_speed, max_link_speed)"
    if virtualisation.is_guest:
        return None, f"{pci}: {GUEST}"
    return link, None
