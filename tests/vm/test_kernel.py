"""Debian's own kernel has what ours may lack, and labs use it."""

from __future__ import annotations

import pytest

from tests.vm.machine import Machine


@pytest.mark.parametrize("module", ["openvswitch", "sch_red", "sch_netem", "rdma_rxe"])
def test_debians_kernel_has_the_module(machine: Machine, module: str) -> None:
    ended = machine.run(f"/run/modprobe {module} && grep -w {module} /proc/modules")
    assert ended.code == 0, ended.err
