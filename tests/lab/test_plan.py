"""The steps that build a lab, without carrying them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from emu.lab.net_steps import AddAddress, AddTun, NetStep, SetQueue, SetUp
from emu.lab.plan import (
    HoldUdpPort,
    LoadRoutes,
    StartSwitches,
    Step,
    plan_network,
    plan_nodes,
    port_indexes,
)
from emu.lab.routes import route_tables
from tests.support.lab_fabrics import clos, clos_of


def _text(steps: Sequence[Step]) -> str:
    """A line per step. Parts of a step, and steps of a network, are indented."""
    lines: list[str] = []
    for title, alike in groupby(steps, _title):
        lines.append(title)
        lines += [f"    {part}" for step in alike for part in _parts(step)]
    return "\n".join(lines) + "\n"


def _title(step: Step) -> str:
    if isinstance(step, NetStep):
        return f"network of {step.namespace}"
    return type(step).__name__ if _parts(step) else repr(step)


def _parts(step: Step) -> list[str]:
    match step:
        case StartSwitches():
            return " ".join(step.transaction).split(" -- ")
        case LoadRoutes():
            return [table.switch for table in step.tables]
        case _:
            return [str(step)] if isinstance(step, NetStep) else []


def test_the_plan_of_a_routed_fabric(golden: Callable[[str, str], None]) -> None:
    """The plan lists every step for a small Clos whose switches are Open vSwitch bridges."""
    topology = clos(1)
    nodes = plan_nodes(topology, bridges=True)
    golden(
        "plan.txt",
        _text(
            nodes
            + plan_network(topology, datapath="netdev", ip=True, routes=route_tables(clos_of(1)))
        ),
    )


def test_without_bridges_only_hosts_have_interfaces() -> None:
    """If the shim forwards, switches have no veth, and no bridge is started."""
    steps = plan_network(clos(2), datapath=None, ip=True, routes=())
    assert "leaf1-eth1" not in _text(steps)
    assert not [step for step in steps if isinstance(step, StartSwitches | LoadRoutes)]


def test_without_ip_a_host_is_a_bare_port() -> None:
    """InfiniBand hosts have no addresses and no RoCE port to hold."""
    steps = plan_network(clos(2), datapath=None, ip=False, routes=())
    assert not [step for step in steps if isinstance(step, AddAddress)]
    assert not [step for step in steps if isinstance(step, HoldUdpPort)]


def test_infiniband_hosts_have_ib0_if_an_mtu_is_given() -> None:
    """ib0 is beside the bare port and has the address of a RoCE host."""
    steps = plan_network(clos(2), datapath=None, ip=False, routes=(), ib0_mtu=2044)
    assert [step for step in steps if getattr(step, "interface", "") == "ib0"][4:8] == [
        AddTun("h2", "ib0"),
        SetQueue("h2", "ib0", mtu=2044, packets=1000),
        SetUp("h2", "ib0"),
        AddAddress("h2", "ib0", "10.0.0.2", 8),
    ]


def test_port_indexes_count_all_switch_ports() -> None:
    """Every switch port has a row on the map of depths. Hosts have none."""
    indexes = port_indexes(clos(2))
    assert sorted(indexes.values()) == list(range(12))
    assert [port.interface for port, index in indexes.items() if index in (0, 11)] == [
        "spine1-eth1",
        "leaf2-eth4",
    ]
