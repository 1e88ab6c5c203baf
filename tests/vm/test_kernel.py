"""Debian's own kernel has what ours may lack, and labs use it."""

from __future__ import annotations

import pytest

from tests.vm.machine import Machine

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("module", ["openvswitch", "sch_red", "sch_netem", "rdma_rxe"])
def test_debians_kernel_has_the_module(machine: Machine, module: str) -> None:
    ended = machine.run(f"/run/modprobe {module} && grep -w {module} /proc/modules")
    assert ended.code == 0, ended.err


def test_the_kernels_red_marks_packets(machine: Machine) -> None:
    """It takes the settings of a curve, ECN among them, and tells them back."""
    red = "limit 1MB min 100KB max 400KB probability 0.2 avpkt 1000 burst 101 bandwidth 1gbit ecn"
    script = (
        "ip link add near type veth peer name far; ip link set near up;"
        f"tc qdisc add dev near root red {red} && tc qdisc show dev near; ip link del near"
    )
    ended = machine.run(script)
    assert "qdisc red" in ended.out, ended.err
    assert "ecn" in ended.out
