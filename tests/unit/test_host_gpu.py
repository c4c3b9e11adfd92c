"""The GPUs of a host: what gpu-bench lists, their links from sysfs, and what becomes of a program
that lists nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import ResourceError
from hostbench.host import pcie
from hostbench.host.gpu import GUEST, gpus, has_driver, list_devices
from hostbench.host.inventory import inventory, merged_inventory
from hostbench.model.host import Gpu, Gpus, HostInventory, Virtualisation
from hostbench.programs.program import stated_version
from hostbench.report.content import Facts, Part
from hostbench.report.inventory import host_section
from tests.unit import block_devices as made
from tests.unit.records import host

METAL, GUEST_OF = Virtualisation(hypervisor=False), Virtualisation(hypervisor=True)
BRIDGE = "sys/devices/pci0000:00/0000:00:01.0"
CARD = f"{BRIDGE}/0000:01:00.0"
H100: dict[str, Any] = {
    "index": 0,
    "backend": "cuda",
    "backends": ["cuda", "opencl"],
    "name": "NVIDIA H100 PCIe",
    "type": "gpu",
    "uuid": "GPU-1",
    "pci": "0000:01:00.0",
    "driver": "550.54",
    "vendor": "NVIDIA",
    "compute_capability": "9.0",
    "compute_units": 114,
    "clock_hertz": 1.755e9,
    "memory_clock_hertz": 1.593e9,
    "bus_width_bits": 5120,
    "l2_bytes": 52428800,
    "memory_bytes": 85899345920,
    "ecc": True,
    "fp64": True,
    "fp16": True,
}
NOTHING = dict.fromkeys(H100) | {
    "index": 1, "backend": "opencl", "backends": ["opencl"], "name": "a processor", "type": "cpu",
    "ecc": False, "fp64": True, "fp16": False,
}  # fmt: skip


def lists(directory: Path, text: str, exit_code: int = 0) -> Path:
    """A gpu-bench that prints `text`."""
    (directory / "answer").write_text(text)
    program = directory / "gpu-bench"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --list-devices ] || exit 2\ncat {directory}/answer\n'
        f"echo trouble >&2\nexit {exit_code}\n"
    )
    program.chmod(0o755)
    return program


def listing(*devices: dict[str, Any]) -> str:
    looked = ["libcuda.so.1: driver 550.54, 1 device", "platform A: 1 device"]
    return json.dumps({"schema": 1, "program": "gpu-bench", "devices": devices, "looked": looked})


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(directory))
    return directory


def card(root: Path, **changes: str) -> None:
    """An x16 card of the fourth generation that idles, below a port of the fifth."""
    now = {"current_link_speed": "2.5 GT/s PCIe", "current_link_width": "16"}
    most = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}
    port = {"max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}
    own = {f"{CARD}/{name}": f"{text}\n" for name, text in (now | most).items()}
    above = {f"{BRIDGE}/{name}": f"{text}\n" for name, text in (now | port).items()}
    changed = {f"{BRIDGE if name.startswith('port_') else CARD}/{name.removeprefix('port_')}":
            f"{text}\n" for name, text in changes.items()}  # fmt: skip
    made.files(root, own | above | changed)
    made.link(root, "sys/bus/pci/devices/0000:01:00.0", CARD)


def found(root: Path, virtualisation: Virtualisation = METAL) -> Gpu:
    return gpus(root, virtualisation).devices[0]


def test_what_the_program_lists(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100, NOTHING))
    known = gpus(tmp_path, METAL)
    assert known.reason is None and len(known.looked) == 2
    first, second = known.devices
    assert (first.name, first.compute_capability, first.compute_units) == (
        "NVIDIA H100 PCIe", "9.0", 114,
    )  # fmt: skip
    assert (first.backend, first.backends, first.ecc) == ("cuda", ("cuda", "opencl"), True)
    assert second.type == "cpu" and second.uuid is None and second.l2_bytes is None
    assert second.ecc is None
    assert second.link_reason == "its driver reports no PCI address"
    assert known.device("GPU-1") is first and known.device(None, 1) is second
    assert known.device("GPU-2") is None and known.device("GPU-2", 1) is None


def test_a_later_program_may_tell_more(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing({**H100, "colour": "green"}))
    assert found(tmp_path).name == "NVIDIA H100 PCIe"


@pytest.mark.parametrize(
    ("text", "exit_code", "part"),
    [
        ("", 0, "does not print a list of devices"),
        ("[]", 0, "does not print a list of devices"),
        ('{"devices": [{"index": 0}], "looked": []}', 0, "devices.0.backend"),
        (listing({**H100, "clock_hertz": "fast"}), 0, "devices.0.clock_hertz"),
        ("{}", 6, "exit code 6; build it again with make programs; its output: 'trouble'"),
    ],
)
def test_a_program_that_lists_nothing_is_a_reason(
    programs: Path, tmp_path: Path, text: str, exit_code: int, part: str
) -> None:
    program = lists(programs, text, exit_code)
    with pytest.raises(ResourceError) as caught:
        list_devices(program)
    known = gpus(tmp_path, METAL)
    assert known.devices == () and known.reason == caught.value.message
    assert part in caught.value.message and "\n" not in caught.value.message


def test_without_the_program_there_is_a_reason(programs: Path, tmp_path: Path) -> None:
    assert "gpu-bench is not an executable file" in (gpus(tmp_path, METAL).reason or "")


def test_who_does_not_ask_starts_no_driver(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100))
    assert inventory(tmp_path).gpus is None
    seen = inventory(tmp_path, gpu=True).gpus
    assert seen is not None and seen.devices[0].uuid == "GPU-1"


def test_the_service_that_has_gpus_speaks_for_its_host() -> None:
    of_gpu = host(gpus=Gpus(devices=(Gpu(index=0, backend="cuda", name="a card"),)))
    assert merged_inventory([host(), of_gpu]).gpus == of_gpu.gpus
    assert merged_inventory([host()]).gpus is None
    again = HostInventory.model_validate_json(of_gpu.model_dump_json())
    assert again == of_gpu


@pytest.mark.parametrize(
    ("name", "there"),
    [("dev/nvidiactl", True), ("dev/dri/renderD128", True), ("dev/kfd", True),
     ("proc/driver/nvidia/version", True), ("dev/dri/card0", False), ("dev/null", False)],
)  # fmt: skip
def test_whether_some_driver_is_there(tmp_path: Path, name: str, there: bool) -> None:
    made.files(tmp_path, {name: ""})
    assert has_driver(tmp_path) is there


def test_a_program_says_its_version_without_a_look_at_the_host(tmp_path: Path) -> None:
    program = tmp_path / "gpu-bench"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "gpu-bench 1.2.3"\n')
    program.chmod(0o755)
    assert stated_version(program) == "gpu-bench 1.2.3"
    program.write_text("#!/bin/sh\necho something else entirely\n")
    with pytest.raises(ResourceError, match="prints no version"):
        stated_version(program)
    program.write_text("#!/bin/sh\nexit 7\n")
    with pytest.raises(ResourceError, match="exit code 7"):
        stated_version(program)


# ---- links ----


def test_the_link_of_a_card(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100))
    card(tmp_path)
    link = found(tmp_path).link
    assert link is not None and found(tmp_path).link_reason is None
    assert (link.transfers_per_second, link.lanes) == (2.5e9, 16)
    assert (link.transfers_per_second_most, link.lanes_most) == (16e9, 16)
    assert (link.port_transfers_per_second_most, link.port_lanes_most) == (32e9, 16)
    # Under load the card is as fast as it can.
    assert (link.transfers_per_second_here, link.lanes_here) == (16e9, 16)
    assert link.payload_bytes is None


def test_a_slot_that_is_slower_or_narrower_bounds_the_card(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100))
    card(tmp_path, port_max_link_speed="8.0 GT/s PCIe", current_link_width="8")
    link = found(tmp_path).link
    assert link is not None
    assert (link.transfers_per_second_here, link.lanes_here) == (8e9, 8)


def test_a_link_that_a_guest_sees_may_be_made_up(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100))
    card(tmp_path)
    one = found(tmp_path, GUEST_OF)
    assert one.link is None and one.link_reason == f"0000:01:00.0: {GUEST}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("current_link_speed", "Unknown"),
        ("max_link_speed", "63.0 GT/s PCIe"),
        ("current_link_width", "0"),
        ("max_link_width", "255"),
    ],
)
def test_a_link_that_sysfs_does_not_tell(
    programs: Path, tmp_path: Path, name: str, text: str
) -> None:
    lists(programs, listing(H100))
    card(tmp_path, **{name: text})
    one = found(tmp_path)
    assert one.link is None and "sysfs does not show" in (one.link_reason or "")


@pytest.mark.parametrize("pci", ["../../../etc", "0000:01:00", "", "0000:01:00.0/..", "zz"])
def test_an_address_that_is_none_is_not_looked_up(programs: Path, tmp_path: Path, pci: str) -> None:
    lists(programs, listing({**H100, "pci": pci}))
    assert found(tmp_path).link_reason == "its driver reports no PCI address"


def test_an_address_with_a_long_domain(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing({**H100, "pci": "00000000:01:00.0"}))
    card(tmp_path)
    assert found(tmp_path).link is not None


def config(control: int, at: int = 0x60, following: int = 0) -> bytes:
    """A configuration space with power management at 0x40 and PCI Express behind it."""
    space = bytearray(256)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes((0x01, at))
    space[at : at + 2] = bytes((0x10, following))
    space[at + 8 : at + 10] = control.to_bytes(2, "little")
    return bytes(space[:256])


@pytest.mark.parametrize(
    ("content", "payload"),
    [
        (config(0x2830), 256),
        (config(0x2810), 128),
        (config(0x2850), 512),
        (config(0x2830)[:64], None),  # all that others than root may read
        (config(0x2830, following=0x40).replace(b"\x10", b"\x11"), None),  # a circle without it
        (bytes(256), None),
        (b"", None),
        (config(0x2830, at=0xF8), None),
    ],
)
def test_how_much_data_a_packet_carries(
    tmp_path: Path, content: bytes, payload: int | None
) -> None:
    (tmp_path / "config").write_bytes(content)
    assert pcie.packet_payload_bytes(tmp_path) == payload
    assert pcie.packet_payload_bytes(tmp_path / "nowhere") is None


def test_what_links_carry() -> None:
    assert pcie.bytes_per_second(16.0, 16) == pytest.approx(31.5e9, rel=1e-3)
    assert pcie.coding(2.5) == "8b/10b" and pcie.coding(32.0) == "128b/130b"
    assert pcie.payload_share(256) == pytest.approx(0.9275, abs=1e-4)
    assert pcie.GENERATIONS == (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)


# ---- the report ----


def test_the_report_has_the_cards(programs: Path, tmp_path: Path) -> None:
    lists(programs, listing(H100, NOTHING))
    card(tmp_path)
    blocks = host_section(host(gpus=gpus(tmp_path, METAL))).blocks
    part = next(one for one in blocks if isinstance(one, Part) and one.title == "GPUs")
    inner = {one.title: one for one in part.blocks if isinstance(one, Part)}
    assert set(inner) == {"GPU 0", "GPU 1"}
    (facts,) = inner["GPU 0"].blocks
    assert isinstance(facts, Facts)
    values = dict(facts.items)
    assert values["Compute capability"] == "9.0" and values["ECC"] == "on"
    assert "2.5 GT/s x16" in str(values["PCI Express"]) and "16 GT/s" in str(values["PCI Express"])
    (of_processor,) = inner["GPU 1"].blocks
    assert isinstance(of_processor, Facts)
    assert "is not a GPU" in str(dict(of_processor.items)["Name"])


def test_the_report_says_what_was_looked_for() -> None:
    reason = "gpu-bench is nowhere"
    blocks = host_section(host(gpus=Gpus(reason=reason))).blocks
    part = next(one for one in blocks if isinstance(one, Part) and one.title == "GPUs")
    (facts,) = part.blocks
    assert isinstance(facts, Facts) and facts.items == (("Looked for", reason),)
    assert all(getattr(one, "title", "") != "GPUs" for one in host_section(host()).blocks)
