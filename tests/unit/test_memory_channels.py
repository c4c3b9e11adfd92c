"""Memory channels from tables of SMBIOS, or why they are unknown."""

import os
import tempfile
from pathlib import Path

import pytest

from hostbench.host.memory import TABLE, Found, read_channels
from hostbench.host.smbios import SmbiosError, memory_devices, structures
from hostbench.model.host import Channels, Virtualisation
from tests.unit import smbios_tables as tables
from tests.unit.smbios_tables import array, device, table, written

METAL = Virtualisation(hypervisor=False, vendor="Supermicro", product="AS -1115CS-TNR")


def found(root: Path, content: bytes, virtualisation: Virtualisation = METAL) -> Found:
    return read_channels(written(root, content), virtualisation)


def alike(count: int, megatransfers: int, width: int = 64) -> tuple[Channels, ...]:
    one = Channels(count=count, transfers_per_second=megatransfers * 1e6, width_bits=width)
    return (one,)


def test_twelve_channels_with_every_second_socket_empty(tmp_path: Path) -> None:
    seen = found(tmp_path, tables.supermicro_12_channels())
    assert (seen.channels, seen.wired, seen.reason) == (alike(12, 4800), 12, None)
    assert seen.source == ("SMBIOS type 17: 12 × 4800 MT/s × 64 bits, 12 of 24 sockets populated")
    assert seen.channels is not None
    assert seen.channels[0].bytes_per_second == 460.8e9


def test_two_devices_of_a_channel_count_once_and_the_configured_speed_counts(
    tmp_path: Path,
) -> None:
    seen = found(tmp_path, tables.eight_channels_full())
    assert (seen.channels, seen.wired) == (alike(8, 2933), 8)


@pytest.mark.parametrize(
    ("names", "channels"),
    [
        # Locator and bank locator, as boards have them.
        ([("ChannelA-DIMM0", "BANK 0"), ("ChannelA-DIMM1", "BANK 1"), ("ChannelB-DIMM0", "")], 2),
        ([("Controller0-ChannelA-DIMM0", "BANK 0"), ("Controller1-ChannelA-DIMM0", "BANK 0")], 2),
        ([("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P1 CHANNEL A"), ("DIMM 1", "P1 CHANNEL A")], 2),
        ([("CPU0 DIMM 0", "CHANNEL A"), ("CPU1 DIMM 0", "CHANNEL A")], 2),
        ([("PROC 1 DIMM 1", "CHANNEL 10"), ("PROC 1 DIMM 2", "CHANNEL 11")], 2),
        ([("Node0_Bank0", "CPU0_Channel0_Dimm0"), ("Node0_Bank0", "CPU0_Channel0_Dimm1")], 1),
        ([("DIMM 0 CHANNEL A", "x"), ("DIMM 1 CHANNEL A", "x")], 1),
        ([("P1-DIMMA1", "x"), ("P1-DIMMA2", "x"), ("P2-DIMMA1", "x"), ("P1-DIMMB1", "x")], 3),
        ([("DIMM_A1", "BANK 0"), ("DIMM_A2", "BANK 1"), ("DIMM_B2", "BANK 3")], 2),
        ([("DIMM_P0_A0", ""), ("DIMM_P0_A1", ""), ("DIMM_P1_A0", "")], 2),
        ([("CPU1_DIMM_A1", ""), ("CPU2_DIMM_A1", "")], 2),
        ([("A1", ""), ("A2", ""), ("B1", "")], 2),
    ],
)
def test_names_of_sockets(tmp_path: Path, names: list[tuple[str, str]], channels: int) -> None:
    assert found(tmp_path, table(*(device(*name) for name in names))).channels == alike(
        channels, 4800
    )


@pytest.mark.parametrize(
    "names",
    [
        # The letter is the processor, the number the socket.
        [f"{letter}{number}" for letter in "AB" for number in range(1, 17)],
        ["PROC 1 DIMM 1", "PROC 1 DIMM 2"],
        ["DIMM0", "DIMM1"],
        ["J6B1", "J6C1"],
        ["P1-DIMMA1", "DIMM1"],
        [""],
    ],
)
def test_names_that_do_not_tell(tmp_path: Path, names: list[str]) -> None:
    seen = found(tmp_path, table(*(device(name) for name in names)))
    assert seen.channels is None
    assert seen.reason is not None and "does not show its channel" in seen.reason
    assert "HOSTBENCH_MEMORY_BANDWIDTH in byte/s" in seen.reason


def controllers(root: Path, *dimms: tuple[int, str, int]) -> None:
    for index, (controller, location, megabytes) in enumerate(dimms):
        place = root / f"sys/devices/system/edac/mc/mc{controller}/dimm{index}"
        place.mkdir(parents=True)
        (place / "dimm_location").write_text(f"{location} \n")
        (place / "size").write_text(f"{megabytes}\n")


def test_the_kernels_memory_controllers_tell_where_names_do_not(tmp_path: Path) -> None:
    controllers(
        tmp_path,
        (0, "channel 0 slot 0", 32768),
        (0, "channel 0 slot 1", 32768),
        (0, "channel 1 slot 0", 32768),
        (1, "channel 0 slot 0", 32768),
        (1, "channel 1 slot 0", 0),
    )
    four = [device(f"PROC 1 DIMM {number}") for number in range(4)]
    seen = found(tmp_path, table(*four))
    assert (seen.channels, seen.wired) == (alike(3, 4800), None)
    assert seen.source is not None and "channels by EDAC" in seen.source
    unlike = found(tmp_path, table(*four[1:], device("PROC 1 DIMM 0", configured=4400)))
    assert unlike.reason is not None and "unlike memory devices" in unlike.reason


def test_controllers_without_channels_do_not_tell(tmp_path: Path) -> None:
    controllers(tmp_path, (0, "memory 0", 32768))
    assert found(tmp_path, table(device("DIMM1"))).channels is None


def test_a_channel_runs_at_the_speed_of_its_slowest_device(tmp_path: Path) -> None:
    seen = found(
        tmp_path,
        table(
            device("DIMM 0", "CHANNEL A", configured=3200),
            device("DIMM 1", "CHANNEL A", configured=2933),
            device("DIMM 0", "CHANNEL B", configured=3200),
        ),
    )
    assert seen.channels == (*alike(1, 3200), *alike(1, 2933))


def test_empty_channels_are_counted_as_wired(tmp_path: Path) -> None:
    populated = [device("DIMM 0", f"P0 CHANNEL {letter}") for letter in "ABCD"]
    empty = [device("DIMM 0", f"P0 CHANNEL {letter}", 0, 0, width=0) for letter in "EFGH"]
    seen = found(tmp_path, table(*populated, *empty))
    assert (seen.channels, seen.wired) == (alike(4, 4800), 8)


def test_what_is_no_memory_of_the_system_is_left_out(tmp_path: Path) -> None:
    seen = found(
        tmp_path,
        table(
            array(0x2000, use=4),
            device("CHANNEL A"),
            device("CHANNEL B", array_handle=0x2000),
            device("SYSTEM ROM", kind=9),
        ),
    )
    assert seen.channels == alike(1, 4800)


def test_extended_fields_and_sizes() -> None:
    ordinary, large, small, unknown = memory_devices(
        table(
            device("A", megabytes=32766),
            device("B", megabytes=131072, configured=70000),
            device("C", megabytes=0x8000 | 512),
            device("D", megabytes=16384, length=0x1B),
        )
    )
    assert (ordinary.size_bytes, ordinary.transfers_per_second) == (32766 << 20, 4.8e9)
    assert (large.size_bytes, large.transfers_per_second) == (131072 << 20, 70e9)
    # A table of SMBIOS 2.6 has no configured speed.
    assert (unknown.size_bytes, unknown.transfers_per_second) == (16384 << 20, None)
    assert small.locator == "C"


def test_a_size_in_kilobytes() -> None:
    content = bytearray(table(device("A", megabytes=512)))
    at = content.index(bytes([17, 0x5C]))
    content[at + 0x0D] |= 0x80
    (one,) = memory_devices(bytes(content))
    assert one.size_bytes == 512 << 10


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (tables.qemu(), "no data width of memory device DIMM 0"),
        (table(device("CHANNEL A", width=0)), "no data width"),
        (table(device("CHANNEL A", configured=0)), "no configured speed"),
        (table(device("CHANNEL A", configured=20)), "no configured speed"),
        (table(device("CHANNEL A", length=0x1B)), "no configured speed"),
        (table(device("CHANNEL A", megabytes=0)), "no memory device that is populated"),
        (table(), "no memory device that is populated"),
        (b"", "no memory device that is populated"),
        (b"\x11", "is damaged: a header at byte 0 is cut off"),
        (b"\x11\x02\x00\x00\x00\x00", "is damaged: the structure at byte 0 has an impossible"),
        (b"\x11\xff\x00\x00", "is damaged: the structure at byte 0 has an impossible"),
        (b"\x11\x04\x00\x00no end", "is damaged: the strings at byte 4 have no end"),
    ],
)
def test_what_a_table_cannot_tell_stays_unknown(tmp_path: Path, content: bytes, part: str) -> None:
    seen = found(tmp_path, content)
    assert seen.channels is None
    assert seen.reason is not None and part in seen.reason


@pytest.mark.parametrize(
    "virtualisation",
    [
        Virtualisation(hypervisor=True),
        Virtualisation(hypervisor=None, vendor="QEMU", product="KVM Virtual Machine"),
        Virtualisation(hypervisor=None, vendor="Amazon EC2", product="c7g.2xlarge"),
        Virtualisation(hypervisor=None, vendor="Microsoft Corporation", product="Virtual Machine"),
    ],
)
def test_a_hypervisors_table_is_never_believed(
    tmp_path: Path, virtualisation: Virtualisation
) -> None:
    seen = found(tmp_path, tables.supermicro_12_channels(), virtualisation)
    assert seen.channels is None
    assert seen.reason is not None and "virtual machine" in seen.reason


def test_bare_metal_of_a_cloud_is_believed(tmp_path: Path) -> None:
    metal = Virtualisation(hypervisor=None, vendor="Amazon EC2", product="c7g.metal")
    assert found(tmp_path, tables.eight_channels_full(), metal).channels == alike(8, 2933)


def test_no_table(tmp_path: Path) -> None:
    seen = read_channels(tmp_path, METAL)
    assert seen.reason is not None and f"no /{TABLE} here" in seen.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_table_for_root_only() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        root.chmod(0o755)
        (written(root, tables.eight_channels_full()) / TABLE).chmod(0o400)
        os.seteuid(65534)
        try:
            seen = read_channels(root, METAL)
        finally:
            os.seteuid(0)
    assert seen.reason is not None and "only root may read" in seen.reason


def test_a_table_cut_anywhere_or_with_any_byte_changed_is_no_crash(tmp_path: Path) -> None:
    whole = tables.eight_channels_full()
    for length in range(len(whole)):
        seen = found(tmp_path, whole[:length])
        assert (seen.channels is None) == (seen.reason is not None)
    for at in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        seen = found(tmp_path, bytes(changed))
        assert (seen.channels is None) == (seen.reason is not None)


def test_a_cut_table_is_an_error() -> None:
    whole = tables.supermicro_12_channels()
    with pytest.raises(SmbiosError, match=r"impossible length|no end|cut off"):
        list(structures(whole[:300]))
