"""Which device a trial of ours ran on, as a peer has to know it."""

from pydantic import ValidationError

from hostbench.base.errors import ResourceError
from hostbench.host.gpu import DeviceList, ListedDevice
from hostbench.programs.peer import Ask, Params
from hostbench.programs.program import find_program

AUTO, BACKEND, DEVICE = "auto", "backend", "device"
CUDA, OPENCL = "cuda", "opencl"
NOT_NVIDIA = "it measures NVIDIA's cards alone, and this device is none that CUDA knows"
UNKNOWN = "it is unknown which device our trial ran on"


def device(ask: Ask, params: Params) -> ListedDevice | None:
    """The device that these parameters mean; None: unknown."""
    try:
        answer = ask((str(find_program("gpu")), "--list-devices"))
        listed = DeviceList.model_validate_json(answer)
    except (ResourceError, ValidationError):
        return None
    wanted, backend = str(params.get(DEVICE, AUTO)), str(params.get(BACKEND, AUTO))
    fits = [one for one in listed.devices if backend in (AUTO, one.backend, *one.backends)]
    if wanted == AUTO:
        return next((one for one in fits if one.type == "gpu"), None)
    return next((one for one in fits if is_named(one, wanted)), None)


def is_named(one: ListedDevice, wanted: str) -> bool:
    """Whether it is meant, by index, UUID or place on the bus, in upper or lower case as the
    program takes them."""
    names = (str(one.index), one.uuid, one.pci)
    return wanted.casefold() in (name.casefold() for name in names if name)


def by_cuda(found: ListedDevice | None) -> bool:
    """Whether the device is one that CUDA can name by its UUID."""
    return found is not None and found.backend == CUDA and bool(found.uuid)


def on_card(found: ListedDevice, *command: str) -> tuple[str, ...]:
    """`command`, which sees this card of NVIDIA's and no other."""
    return ("env", f"CUDA_VISIBLE_DEVICES={found.uuid}", *command)
