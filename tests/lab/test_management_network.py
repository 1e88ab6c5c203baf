"""The management network of a lab on the exact clock, and the names of hosts that lead to it."""

from __future__ import annotations

from emu.lab.host_names import host_lines
from emu.lab.management_network import steps_of
from emu.lab.plan import LAB
from tests.support.lab_fabrics import clos


def test_management_network_joins_all_hosts() -> None:
    text = [f"{step.namespace}: {step}" for step in steps_of(clos(2), LAB, ipoib=False)]
    assert text[:7] == [
        "lab: add bridge mgmt",
        "lab: set mgmt up",
        "h1: add veth h1-mgmt mtu 1500 peer in lab",
        "lab: set h1-mgmt master mgmt",
        "lab: set h1-mgmt up",
        "h1: set h1-mgmt up",
        "h1: add address 192.168.0.1/16 to h1-mgmt",
    ]
    assert text[-1] == "h4: add address 192.168.0.4/16 to h4-mgmt"


def test_it_has_the_addresses_of_ipoib_where_the_fabric_has_none() -> None:
    text = [f"{step.namespace}: {step}" for step in steps_of(clos(2), LAB, ipoib=True)]
    assert text[-1] == "h4: add address 10.0.0.4/8 to h4-mgmt"


def test_names_lead_to_the_management_network_where_there_is_one() -> None:
    def last(*, is_ethernet: bool, management: bool) -> list[str]:
        lines = [*host_lines(clos(2), is_ethernet=is_ethernet, management=management)]
        return lines[-2 if management else -1 :]

    assert last(is_ethernet=True, management=True) == ["10.0.0.4 h4-eth0", "192.168.0.4 h4-mgmt h4"]
    assert last(is_ethernet=False, management=True) == ["10.0.0.4 h4-ib0", "192.168.0.4 h4-mgmt h4"]
    assert last(is_ethernet=True, management=False) == ["10.0.0.4 h4-eth0 h4"]
    assert last(is_ethernet=False, management=False) == ["10.0.0.4 h4-ib0 h4"]
