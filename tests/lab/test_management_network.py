"""The management network of a lab whose fabric carries no IP."""

from __future__ import annotations

from emu.lab.management_network import steps_of
from emu.lab.plan import LAB
from tests.support.lab_fabrics import clos


def test_management_network_joins_all_hosts() -> None:
    text = [f"{step.namespace}: {step}" for step in steps_of(clos(2), LAB)]
    assert text[:7] == [
        "lab: add bridge mgmt",
        "lab: set mgmt up",
        "h1: add veth h1-mgmt mtu 1500 peer in lab",
        "lab: set h1-mgmt master mgmt",
        "lab: set h1-mgmt up",
        "h1: set h1-mgmt up",
        "h1: add address 10.0.0.1/8 to h1-mgmt",
    ]
    assert text[-1] == "h4: add address 10.0.0.4/8 to h4-mgmt"
