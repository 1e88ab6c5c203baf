"""Debian's kernel has the modules that other kernels may lack, and labs use them."""

from __future__ import annotations

import sys

import pytest

from tests.vm.machine import Machine

pytestmark = pytest.mark.timeout(2400)


@pytest.mark.parametrize("module", ["openvswitch", "sch_red", "sch_netem", "rdma_rxe"])
def test_debians_kernel_has_the_module(machine: Machine, module: str) -> None:
    ended = machine.run(f"/run/modprobe {module} && grep -w {module} /proc/modules")
    assert ended.code == 0, ended.err


def test_the_kernels_red_marks_as_its_model_does(machine: Machine) -> None:
    """The machine runs the test of tests/lab that other kernels skip."""
    test = "tests/lab/marker/test_red.py::test_the_kernel_marks_as_its_model_does"
    ended = machine.run(
        f"/run/modprobe sch_red; /run/modprobe sch_tbf; /run/modprobe openvswitch;"
        f"{sys.executable} -m pytest -q -p no:cacheprovider --timeout 1200 {test}"
    )
    assert "1 passed" in ended.out, ended.out
