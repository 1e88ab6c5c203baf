"""MPI programs in a running lab: every byte between hosts crosses the fabric."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.lab_fabrics import INFINIBAND, ROCE
from tests.support.user import ROOT, User

EXAMPLE = ROOT / "examples" / "mpi_all_reduce.py"

pytestmark = [
    pytest.mark.timing,
    pytest.mark.usefixtures("lab_machine"),
    pytest.mark.skipif(
        shutil.which("mpirun") is None or find_spec("mpi4py") is None,
        reason="needs Open MPI: apt-get install openmpi-bin python3-mpi4py",
    ),
]


def test_an_all_reduce_over_ipoib_is_numpys_sum(with_tun: User) -> None:
    me = at_home(with_tun)
    with lab_up(me, INFINIBAND):
        _sum_up(me, "ib0")


def test_an_all_reduce_over_ethernet_is_numpys_sum(myself: User) -> None:
    """The exit code of a failed program is that of `emu mpirun`."""
    me = at_home(myself)
    with lab_up(me, ROCE):
        _sum_up(me, "h1-eth0")
        assert me.run_emu("mpirun", "-n", "1", "--", "sh", "-c", "exit 3").code == 3


def _sum_up(me: User, interface: str) -> None:
    """Run the example with two ranks on each of two hosts, which send more than 400 KB each.

    Every rank sees its host's RDMA NIC in /sys."""
    done = me.run_emu("mpirun", "-n", "4", "--", sys.executable, EXAMPLE)
    assert re.match("4 ranks on h1, h2: right, in [0-9.]+ ms by its clock\n", done.out), done
    names = me.run_emu("mpirun", "--", "cat", "/sys/class/infiniband/emu_0/node_desc")
    assert sorted(names.out.split()) == ["h1", "h2"]
    sent = f"/sys/class/net/{interface}/statistics/tx_bytes"
    counted = me.run_emu("exec", "h1", "--", "cat", sent)
    assert int(counted.out) > 400_000
