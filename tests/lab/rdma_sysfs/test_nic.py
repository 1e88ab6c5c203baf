"""The texts of a NIC's files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emu.lab.rdma_sysfs.counters import HostCounters
from emu.lab.rdma_sysfs.nic import (
    Nic,
    PortState,
    changing_files,
    cpu_mask,
    ethernet_nic,
    fixed_files,
    infiniband_nic,
    links,
)
from emu.spec.model import Spec, spec_from_text

DEVICE = "class/infiniband/emu_0"
PORT = f"{DEVICE}/ports/1"
PAIR = """
name: pair
topology: {{kind: dumbbell, hosts_per_side: 1, links: {{host: {{rate: {rate}}}}}}}
traffic: [{{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 1MB}}]
"""
PARTED = """
fabric: ib
subnet:
  lmc: 2
  partitions: {red: {pkey: 0x11, full: [h2]}, blue: {pkey: 0x12, limited: [h2, h1]}}
"""


def spec_of(more: str, rate: str) -> Spec:
    return spec_from_text((PAIR.format(rate=rate) + more).encode(), source="pair")


def roce(rate: str = "100Gbit") -> Nic:
    spec = spec_of("", rate)
    return ethernet_nic(spec.topology.build(), "h2", "0-1")


def infiniband(rate: str = "100Gbit", more: str = "fabric: ib\n") -> Nic:
    spec = spec_of(more, rate)
    return infiniband_nic(
        spec, spec.topology.build(), "h2", "0-1", lid=12, runs_manager=False, interface="ib0"
    )


def lines(nic: Nic, folder: str) -> dict[str, str]:
    """The fixed files in a folder, without those in its folders."""
    return {
        path.removeprefix(f"{folder}/"): text.removesuffix("\n")
        for path, text in fixed_files(nic).items()
        if path.rpartition("/")[0] == folder
    }


def test_a_roce_port_has_the_kernels_texts() -> None:
    assert lines(roce(), PORT) == {
        "rate": "100 Gb/sec (4X EDR)",
        "link_layer": "Ethernet",
        "lid": "0x0",
        "lid_mask_count": "0",
        "sm_sl": "0",
        "cap_mask": "0x04010000",
    }
    files = fixed_files(roce())
    assert files[f"{PORT}/gids/0"] == "0000:0000:0000:0000:0000:ffff:0a00:0002\n"
    assert files[f"{PORT}/gid_attrs/types/0"] == "RoCE v2\n"
    assert files[f"{PORT}/gid_attrs/ndevs/0"] == "h2-eth0\n"
    assert lines(roce(), f"{PORT}/pkeys") == {"0": "0xffff"}


def test_an_infiniband_port_has_the_kernels_texts() -> None:
    assert lines(infiniband(), PORT) == {
        "rate": "100 Gb/sec (4X EDR)",
        "link_layer": "InfiniBand",
        "lid": "0xc",
        "lid_mask_count": "0",
        "sm_sl": "0",
        "cap_mask": "0x02014840",
    }
    files = fixed_files(infiniband())
    assert files[f"{PORT}/gids/0"] == "fe80:0000:0000:0000:0000:0000:0020:0005\n"
    assert files[f"{PORT}/gid_attrs/types/0"] == "IB/RoCE v1\n"
    assert f"{PORT}/gid_attrs/ndevs/0" not in files


@pytest.mark.parametrize("nic", [roce, infiniband])
@pytest.mark.parametrize(
    ("rate", "text"),
    [
        ("100Gbit", "100 Gb/sec (4X EDR)"),
        ("200Gbit", "200 Gb/sec (4X HDR)"),
        ("400Gbit", "400 Gb/sec (4X NDR)"),
        ("800Gbit", "800 Gb/sec (4X XDR)"),
    ],
)
def test_the_rate_is_that_of_the_hosts_cable(
    nic: Callable[[str], Nic], rate: str, text: str
) -> None:
    assert lines(nic(rate), PORT)["rate"] == text


def test_p_keys_and_lmc_are_the_specs() -> None:
    parted = infiniband(more=PARTED)
    assert lines(parted, f"{PORT}/pkeys") == {"0": "0xffff", "1": "0x8011", "2": "0x0012"}
    assert lines(parted, PORT)["lid_mask_count"] == "2"


@pytest.mark.parametrize(
    ("nic", "guid"), [(roce(), "0000:0aff:fe00:0002"), (infiniband(), "0000:0000:0020:0004")]
)
def test_a_device_has_the_kernels_texts(nic: Nic, guid: str) -> None:
    """A RoCE NIC's GUID is its MAC address as EUI-64."""
    device = lines(nic, DEVICE)
    assert device["node_type"] == "1: CA"
    assert device["node_guid"] == device["sys_image_guid"] == guid
    assert device["node_desc"] == "h2"
    own = lines(nic, f"{DEVICE}/device")
    assert (own["numa_node"], own["local_cpus"], own["local_cpulist"]) == ("-1", "3", "0-1")
    assert fixed_files(nic)["class/infiniband_verbs/uverbs0/ibdev"] == "emu_0\n"


@pytest.mark.parametrize(
    ("nic", "down"), [(roce(), "3: Disabled\n"), (infiniband(), "2: Polling\n")]
)
def test_a_pulled_cable_shows_in_the_states(nic: Nic, down: str) -> None:
    def states(*, up: bool) -> tuple[str, str]:
        files = changing_files(nic, PortState(up=up))
        return files[f"{PORT}/state"], files[f"{PORT}/phys_state"]

    assert states(up=True) == ("4: ACTIVE\n", "5: LinkUp\n")
    assert states(up=False) == ("1: DOWN\n", down)


def test_counters_have_the_kernels_names() -> None:
    counted = HostCounters({"PortXmitData": 7, "PortRcvPkts": 5}, {"out_of_sequence": 3})
    files = changing_files(roce(), PortState(up=True, sm_lid=1, counters=counted))
    shown = {path.removeprefix(f"{PORT}/"): text for path, text in files.items() if text != "0\n"}
    assert shown == {
        "state": "4: ACTIVE\n",
        "phys_state": "5: LinkUp\n",
        "sm_lid": "0x1\n",
        "counters/port_xmit_data": "7\n",
        "counters/port_rcv_packets": "5\n",
        "counters/unicast_rcv_packets": "5\n",
        "hw_counters/out_of_sequence": "3\n",
    }


def test_the_links_lead_to_the_device_and_its_interface() -> None:
    net = f"{DEVICE}/device/net"
    verbs = {"class/infiniband_verbs/uverbs0/device": "../../infiniband/emu_0/device"}
    assert links(roce()) == {**verbs, f"{net}/h2-eth0": "../../../../net/h2-eth0"}
    assert links(infiniband()) == {**verbs, f"{net}/ib0": "../../../../net/ib0"}


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [("0", "1"), ("0-3,8", "10f"), ("0-31", "ffffffff"), ("0-3,32", "00000001,0000000f")],
)
def test_a_cpu_list_becomes_the_kernels_bitmap(cpus: str, mask: str) -> None:
    assert cpu_mask(cpus) == mask
