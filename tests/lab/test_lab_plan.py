"""The plan of a lab: each decision for a given machine, without building the lab."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from emu.errors import HostError
from emu.lab.lab_plan import LabPlan, LabRequest, plan_lab
from emu.lab.net_steps import AddAddress, AddBridge
from emu.lab.plan import AttachMarker, LoadRoutes, PlaceRed, StartSwitches
from emu.spec.load import spec_from_text

ROCE = "topology: {kind: dumbbell, hosts_per_side: 1}\nplane: ovs\n"
IB = "fabric: ib\ntopology: {kind: dumbbell, hosts_per_side: 1}\n"
TCP = "traffic: [{name: t, pattern: pair, from: h1, to: h2, stack: tcp, size: 1KB}]\n"
ECN = "switches: {ecn: {kmin: 50KB}}\n"
RED = "switches: {ecn: {kmin: 5KB, kmax: 200KB, pmax: 1%, marker: red}}\n"


@dataclass(frozen=True)
class Machine:
    """A machine that lacks only what its fields name."""

    no_ib0: str = ""
    no_kernel_datapath: bool = False

    def why_no_ib0(self) -> str:
        return self.no_ib0

    def datapath(self, *, kernel: bool) -> str:
        if kernel and self.no_kernel_datapath:
            raise HostError("this kernel has no openvswitch", remedy="sudo modprobe openvswitch")
        return "system" if kernel else "netdev"


def plan(
    text: str, machine: Machine = Machine(), *, workload: bool = True, interactive: bool = False
) -> LabPlan:
    spec = spec_from_text(text.encode(), source="test.emu.yml")
    return plan_lab(LabRequest(spec, "/out", 1000, workload, interactive), machine)


def steps_of(plan: LabPlan, kind: type) -> int:
    return sum(isinstance(step, kind) for step in (*plan.nodes, *plan.network))


def test_a_roce_run_has_bridges_and_fixed_routes() -> None:
    """All changes of links are in the spec, so nothing reroutes."""
    own = plan(ROCE)
    assert (own.plane, own.routing, own.nics, own.tcp, own.ib0) == (
        "ovs",
        None,
        "workload",
        False,
        False,
    )
    assert steps_of(own, StartSwitches) == steps_of(own, LoadRoutes) == 1


def test_an_interactive_lab_reroutes_and_has_no_nics() -> None:
    own = plan(ROCE, workload=False, interactive=True)
    assert (own.routing, own.nics) == ("lab", None)


def test_infiniband_has_a_subnet_manager_and_no_bridges() -> None:
    own = plan(IB)
    assert (own.plane, own.routing, own.nics, own.ib0) == (
        "shim",
        "subnet manager",
        "workload",
        False,
    )
    assert steps_of(own, StartSwitches) == 0


def test_infiniband_without_a_workload_has_idle_nics() -> None:
    own = plan(IB, workload=False)
    assert (own.nics, own.ib0, own.notes) == ("idle", True, ())


def test_without_ib0_the_lab_has_no_ip_and_a_note() -> None:
    own = plan(IB, Machine(no_ib0="no /dev/net/tun"), workload=False)
    assert (own.nics, own.ib0) == (None, False)
    assert own.notes == ("hosts have no ib0, so no IP: no /dev/net/tun",)


def test_exact_labs_have_a_management_network() -> None:
    """On InfiniBand it has the addresses of IPoIB, which the fabric does not carry."""
    planned = {
        text: plan_lab(
            LabRequest.interactive_exact_lab(spec_from_text(text.encode(), source=""), "/out"),
            Machine(),
        )
        for text in (IB, ROCE)
    }
    for own in planned.values():
        assert own.management
        assert steps_of(own, AddBridge) == 1
        assert "management network" in own.notes[0]
    hosts = len(planned[IB].request.spec.topology.build().hosts)
    assert steps_of(planned[IB], AddAddress) == 2 * hosts


def test_tcp_on_infiniband_needs_ib0() -> None:
    assert plan(IB + TCP).ib0
    with pytest.raises(HostError, match="TCP on InfiniBand needs ib0: no /dev/net/tun"):
        plan(IB + TCP, Machine(no_ib0="no /dev/net/tun"))


def test_the_tcp_process_needs_a_workload() -> None:
    assert plan(ROCE + TCP).tcp
    assert not plan(ROCE + TCP, workload=False).tcp


def test_ebpf_marks_unless_the_shim_forwards() -> None:
    own = plan(ROCE + ECN)
    assert own.marker == "ebpf"
    assert isinstance(own.marker_step, AttachMarker)
    assert not own.ebpf_is_required
    by_shim = plan(ROCE.replace("ovs", "shim") + ECN)
    assert (by_shim.marker, by_shim.marker_step) == ("shim", None)
    assert plan(ROCE + ECN.replace("50KB", "50KB, marker: ebpf")).ebpf_is_required


def test_red_needs_the_kernels_datapath() -> None:
    own = plan(ROCE + RED)
    assert own.marker == "red"
    assert isinstance(own.marker_step, PlaceRed)
    assert "the kernel's RED holds the queues" in own.notes[0]
    with pytest.raises(HostError, match="no openvswitch"):
        plan(ROCE + RED, Machine(no_kernel_datapath=True))


def test_a_plan_can_be_printed_and_compared() -> None:
    own = plan(ROCE + ECN)
    lines = str(own).splitlines()
    assert lines[0] == "forwarded by ovs, marked by ebpf, routed again by None"
    assert "AddHost(name='h1'" in str(own)
    assert own == plan(ROCE + ECN) != replace(own, marker="shim")
