"""UCX over the verbs of emulated NICs: Debian's ucx_info and ucx_perftest, and Open MPI."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exact_lab import EXACT, REAL
from tests.support.lab_fabrics import clos_spec
from tests.support.user import ROOT
from tests.support.verbs_programs import ProgramsLab, programs_lab

SETTINGS = ("env", "UCX_TLS=rc_verbs,ud_verbs", "UCX_NET_DEVICES=emu_0:1")
UD_ALONE = ("env", "UCX_TLS=ud_verbs", "UCX_NET_DEVICES=emu_0:1")
LABS = {
    "roce-exact": ("roce", EXACT),
    "ib-exact": ("ib", EXACT),
    "roce-real": ("roce", REAL),
}

pytestmark = pytest.mark.skipif(
    shutil.which("ucx_perftest") is None, reason="needs ucx_perftest: apt-get install ucx-utils"
)


@pytest.fixture(scope="module")
def lab(
    request: pytest.FixtureRequest, open_folder: Path, lab_machine: None
) -> Iterator[ProgramsLab]:
    fabric, words = LABS[request.param]
    with programs_lab(open_folder, clos_spec(fabric), *words) as up:
        yield up


def figures(lab: ProgramsLab, settings: tuple[str, ...], *test: str) -> tuple[float, float]:
    """The overall latency in microseconds and bandwidth in MB/s that ucx_perftest prints."""
    command = (*settings, "ucx_perftest", "-f", "-w", "10")
    _, printed = lab.pair(command, (*command, "h1", *test))
    _, _, _, latency_us, _, mb_s, *_ = printed.splitlines()[-1].split()
    return float(latency_us), float(mb_s)


on_all = pytest.mark.parametrize("lab", LABS, indirect=True)
on_exact = pytest.mark.parametrize("lab", [one for one in LABS if "exact" in one], indirect=True)
on_roce = pytest.mark.parametrize("lab", ["roce-exact"], indirect=True)


@on_all
def test_ucx_finds_its_transports(lab: ProgramsLab) -> None:
    found = lab.prints("h1", "ucx_info", "-d")
    assert re.findall(r"Transport: (\w+)\n#\s+Device: emu_0:1\n", found) == ["rc_verbs", "ud_verbs"]


@on_exact
@pytest.mark.parametrize("test", ["tag_lat", "ucp_am_lat", "ucp_fadd", "stream_lat"])
def test_small_messages_take_microseconds(lab: ProgramsLab, test: str) -> None:
    latency_us, _ = figures(lab, SETTINGS, "-t", test, "-n", "200")
    assert 0.3 < latency_us < 5


@on_exact
@pytest.mark.parametrize("test", ["tag_bw", "ucp_put_bw"])
def test_large_messages_fill_the_line(lab: ProgramsLab, test: str) -> None:
    """RoCE's headers take 2 % of 100 Gbit/s, InfiniBand's less."""
    _, mb_s = figures(lab, SETTINGS, "-t", test, "-n", "500", "-s", "65536")
    assert 0.96 < mb_s * 2**20 * 8 / 100e9 < 1


@on_all
def test_datagrams_carry_ucx(lab: ProgramsLab) -> None:
    """Its own acknowledgements and retransmissions."""
    latency_us, _ = figures(lab, UD_ALONE, "-t", "tag_lat", "-n", "100")
    assert latency_us > 0.3


@on_roce
def test_mpi_ranks_use_rdma(lab: ProgramsLab) -> None:
    """The example, without TCP between the ranks: a ping-pong takes a microsecond."""
    ended = lab.mpirun("--rdma", "-n", "2", sys.executable, str(ROOT / "examples/mpi_latency.py"))
    rows = [[float(word) for word in line.split()] for line in ended.splitlines()[1:]]
    assert [row[0] for row in rows] == [1, 64, 1024, 4096, 65536, 262144]
    assert 0.3 < rows[0][1] < 1
    assert 95 < rows[-1][2] < 98.1


@on_roce
def test_mpi_ranks_of_one_host_use_rdma_too(lab: ProgramsLab) -> None:
    program = str(ROOT / "examples/mpi_all_reduce.py")
    printed = lab.mpirun("--rdma", "-n", "8", sys.executable, program)
    assert printed.startswith("8 ranks on h1, h2, h3, h4: right")
