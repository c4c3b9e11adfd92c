"""The interfaces of a host: what they are, and which of them say how fast their line is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.host.inventory import inventory, merged_inventory
from hostbench.host.network import BANDWIDTH, GUEST, INTERFACES_MOST, network
from hostbench.model.host import Interface, Network, Virtualisation
from hostbench.report.content import Code, Facts, Part, Table
from hostbench.report.inventory import host_section
from tests.unit import block_devices as made
from tests.unit.records import host

METAL = Virtualisation(hypervisor=False)
NET = "sys/class/net"


def interface(root: Path, name: str, index: int, directory: str = "virtual", **files: str) -> None:
    """One as sysfs has it: the class directory is full of links."""
    plain = {"ifindex": index, "iflink": index, "type": 1, "mtu": 1500, "operstate": "up"}
    path = f"sys/devices/{directory}/net/{name}"
    made.files(root, {f"{path}/{file}": f"{text}\n" for file, text in (plain | files).items()})
    made.files(root, {f"{path}/queues/rx-0/rps_cpus": "0\n", f"{path}/queues/tx-0/xps_rxqs": "0\n"})
    made.link(root, f"{NET}/{name}", path)


def device(root: Path, name: str, directory: str, bus: str, driver: str) -> None:
    """What the interface's device is."""
    path = f"sys/devices/{directory}"
    made.files(root, {f"sys/bus/{bus}/uevent": "\n", f"sys/bus/{bus}/drivers/{driver}/bind": "\n"})
    made.link(root, f"{path}/net/{name}/device", path)
    made.link(root, f"{path}/subsystem", f"sys/bus/{bus}")
    made.link(root, f"{path}/driver", f"sys/bus/{bus}/drivers/{driver}")


def physical(root: Path, name: str = "eth0", **files: str) -> None:
    """A network card of a server: Intel X710."""
    directory = f"pci0000:00/0000:3b:00.{len(list(root.glob('sys/class/net/*')))}"
    interface(root, name, 2, directory, **({"speed": "10000", "duplex": "full"} | files))
    device(root, name, directory, "pci", "i40e")


def found(root: Path, name: str, virtualisation: Virtualisation = METAL) -> Interface:
    one = network(root, virtualisation).interface(name)
    assert one is not None
    return one


def test_a_card(tmp_path: Path) -> None:
    physical(tmp_path)
    one = found(tmp_path, "eth0")
    assert (one.kind, one.physical, one.driver, one.state) == ("ethernet", True, "i40e", "up")
    assert (one.mtu_bytes, one.duplex) == (1500, "full")
    assert (one.receive_queues, one.transmit_queues) == (1, 1)
    assert one.link_bits_per_second == 10e9 and one.link_reason is None
    assert one.link_source == "eth0: 10000 Mbit/s (/sys/class/net/eth0/speed)"


@pytest.mark.parametrize("speed", ["-1", "0", "", "fast"])
def test_a_card_that_does_not_tell_its_speed(tmp_path: Path, speed: str) -> None:
    physical(tmp_path, speed=speed)
    one = found(tmp_path, "eth0")
    assert one.physical and one.link_bits_per_second is None
    assert one.link_reason == "eth0: its driver reports no speed, or it is down"


def test_a_guest_sees_what_its_hypervisor_makes_up(tmp_path: Path) -> None:
    # An emulated e1000 says 1000 and carries ten times that.
    physical(tmp_path, speed="1000")
    one = found(tmp_path, "eth0", Virtualisation(hypervisor=True))
    assert one.link_bits_per_second is None and one.link_reason == f"eth0: {GUEST}"


@pytest.mark.parametrize(
    ("bus", "driver", "kind"),
    [("virtio", "virtio_net", "virtio"), ("vmbus", "hv_netvsc", "hyperv"),
     ("xen", "vif", "xen")],
)  # fmt: skip
def test_paravirtual_ones(tmp_path: Path, bus: str, driver: str, kind: str) -> None:
    interface(tmp_path, "eth0", 2, "virtual/one", speed="10000")
    device(tmp_path, "eth0", "virtual/one", bus, driver)
    one = found(tmp_path, "eth0")
    assert (one.kind, one.physical, one.link_bits_per_second) == (kind, False, None)
    assert one.link_reason == f"eth0: it is {kind}, which has no link that is known"


def test_veth_says_10000_and_is_not_believed(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", 7, iflink="8", speed="10000", duplex="full")
    one = found(tmp_path, "eth0")
    assert (one.kind, one.physical, one.link_bits_per_second) == ("veth", False, None)
    assert one.link_reason == "eth0: veth devices have no real speed"


def test_what_software_makes(tmp_path: Path) -> None:
    interface(tmp_path, "lo", 1, type="772", mtu="65536")
    interface(tmp_path, "br0", 3, uevent="DEVTYPE=bridge\nINTERFACE=br0", speed="10000")
    interface(tmp_path, "docker0", 4, speed="-1")
    made.files(tmp_path, {"sys/devices/virtual/net/docker0/bridge/stp_state": "0\n"})
    interface(tmp_path, "tun0", 5, type="65534", tun_flags="0x1001")
    interface(tmp_path, "dummy0", 6)
    # One that lies on another is no veth, though it is linked with it.
    interface(tmp_path, "macvlan0", 9, iflink="2")
    made.link(tmp_path, "sys/devices/virtual/net/macvlan0/lower_eth0", "sys")
    kinds = {one.name: one.kind for one in network(tmp_path, METAL).interfaces}
    assert kinds == {
        "lo": "loopback",
        "br0": "bridge",
        "docker0": "bridge",
        "tun0": "tun",
        "dummy0": "virtual",
        "macvlan0": "virtual",
    }
    assert all(one.link_bits_per_second is None for one in network(tmp_path, METAL).interfaces)
    assert found(tmp_path, "lo").link_reason == "lo: it is the loopback, which has no link"


def test_a_radio(tmp_path: Path) -> None:
    physical(tmp_path, "wlp3s0", uevent="DEVTYPE=wlan\nINTERFACE=wlp3s0")
    one = found(tmp_path, "wlp3s0")
    assert one.physical and one.kind == "wlan" and one.link_bits_per_second is None
    assert "radio" in (one.link_reason or "")


def test_of_a_host_full_of_containers_the_cards_are_kept(tmp_path: Path) -> None:
    for number in range(100):
        interface(tmp_path, f"a{number}", 100 + number, iflink=str(1000 + number))
    physical(tmp_path, "z0")
    names = [one.name for one in network(tmp_path, METAL).interfaces]
    assert len(names) == INTERFACES_MOST and names[0] == "z0"


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("2", True), ("0", False), ("", None)])
def test_timestamps(tmp_path: Path, text: str, expected: bool | None) -> None:
    made.files(tmp_path, {"proc/sys/net/ipv4/tcp_timestamps": text})
    assert network(tmp_path, METAL).tcp_timestamps is expected


def test_a_host_without_sysfs(tmp_path: Path) -> None:
    assert network(tmp_path, METAL) == Network()


def test_what_the_user_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(BANDWIDTH.variable, "1.17e9")
    assert network(tmp_path, METAL).user_bytes_per_second == 1.17e9
    monkeypatch.setenv(BANDWIDTH.variable, "10G")
    with pytest.raises(UsageError, match=r"HOSTBENCH_NET_BANDWIDTH '10G' is not a bandwidth"):
        network(tmp_path, METAL)


def test_one_service_of_a_host_knows_its_network() -> None:
    of_net = host(network=Network(interfaces=(Interface(name="a", kind="veth", physical=False),)))
    of_cpu = host(network=None)
    assert merged_inventory([of_cpu, of_net]).network == of_net.network
    assert merged_inventory([of_net, of_cpu]).network == of_net.network
    assert merged_inventory([of_cpu]).network is None
    assert inventory(Path("/nowhere"), network=False).network is None


def test_this_host() -> None:
    lo = found(Path("/"), "lo")
    assert (lo.kind, lo.physical, lo.mtu_bytes) == ("loopback", False, 65536)


@pytest.fixture
def pair() -> Iterator[str]:
    """A network namespace with a pair of veth in it."""
    name = "hostbench-unit"
    make = [
        ["ip", "netns", "add", name],
        ["ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
        ["ip", "-n", name, "link", "set", "v0", "up"],
        ["ip", "-n", name, "link", "set", "v1", "up"],
    ]
    try:
        for command in make:
            subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        pytest.skip("no network namespace with veth can be made here")
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def test_the_veth_of_this_kernel(pair: str) -> None:
    program = (
        "from pathlib import Path; from hostbench.host.network import network;"
        "from hostbench.model.host import Virtualisation;"
        "print(network(Path('/'), Virtualisation(hypervisor=False)).model_dump_json())"
    )
    ran = subprocess.run(
        ["ip", "netns", "exec", pair, sys.executable, "-c", program],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    one = Network.model_validate_json(ran.stdout).interface("v0")
    assert one is not None and one.kind == "veth" and one.link_bits_per_second is None


def shown(inventory: Network | None) -> tuple[dict[str, object], list[tuple[object, ...]]]:
    """The facts of the report's part about it, and the rows of its table."""
    blocks = [
        block
        for part in host_section(host(network=inventory)).blocks
        if isinstance(part, Part) and part.title == "Network"
        for block in part.blocks
    ]
    facts: dict[str, object] = {
        name: text for block in blocks if isinstance(block, Facts) for name, text in block.items
    }
    tables = [block for block in blocks if isinstance(block, Table)]
    return facts, [row for table in tables for group in table.groups for row in group.rows]


def test_the_report_shows_it(tmp_path: Path) -> None:
    assert shown(None) == ({}, [])
    physical(tmp_path)
    interface(tmp_path, "veth1", 7, iflink="8")
    interface(tmp_path, "dummy0", 8, operstate="down")
    facts, (card, pair) = shown(network(tmp_path, METAL))
    assert facts == {"TCP timestamps": "not known", "Bandwidth set": "none"}
    assert card[:5] == (Code("eth0"), "ethernet", "i40e", "up", "1500")
    assert "10.00 Gbit/s" in str(card[-1])
    assert pair[:2] == (Code("veth1"), "veth, virtual")
    assert pair[-1] == "veth1: veth devices have no real speed"
    for number in range(40):
        interface(tmp_path, f"b{number}", 100 + number)
    facts, rows = shown(network(tmp_path, METAL))
    assert (facts["Further interfaces"], len(rows)) == ("26", 16)
