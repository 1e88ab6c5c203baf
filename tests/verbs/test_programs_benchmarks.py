"""Benchmarks besides perftest, unmodified: libfabric's fi_pingpong, qperf and fio's rdma engine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.exact_lab import EXACT
from tests.support.lab_fabrics import clos_spec
from tests.support.user import wait
from tests.support.verbs_programs import ProgramsLab, programs_lab
from tests.support.waiting import eventually

SERVER, CLIENT = "h1", "h3"
RATE_BPS, SLOW_BPS = 100e9, 1e8
"""qperf's tests last a second: at 100 Mbit/s it has few packets."""
LATENCY_S = 4e-6
"""Of three switches and both NICs, at most."""
BYTES = 65536
FIO = ("fio", "--ioengine=rdma", "--port=1234", "--bs=64k", "--size=1m", "--output-format=json")


def needs(program: str, package: str) -> pytest.MarkDecorator:
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"needs {program}: apt-get install {package}")


@pytest.fixture(scope="module", params=["roce", "ib"])
def lab(
    open_folder: Path, lab_machine: None, request: pytest.FixtureRequest
) -> Iterator[ProgramsLab]:
    with programs_lab(open_folder, clos_spec(request.param), *EXACT) as up:
        yield up


@pytest.fixture(params=["roce", "ib"])
def slow_lab(
    open_folder: Path, lab_machine: None, request: pytest.FixtureRequest
) -> Iterator[ProgramsLab]:
    spec = clos_spec(request.param).replace("100Gbit", "100Mbit")
    with programs_lab(open_folder, spec, *EXACT) as up:
        yield up


@needs("fi_pingpong", "libfabric-bin")
@pytest.mark.parametrize("endpoint", ["msg", "rdm", "dgram"])
def test_libfabric_sends_messages(lab: ProgramsLab, endpoint: str) -> None:
    """Connected, reliable (by ofi_rxm) and datagrams, which are at most 4 KB. The first messages of
    `rdm` connect."""
    size = 2048 if endpoint == "dgram" else BYTES
    words = ("fi_pingpong", "-p", "verbs", "-e", endpoint, "-I", "20", "-S", str(size))
    for printed in lab.pair(words, (*words, SERVER), (SERVER, CLIENT)):
        *_, mb_s, us, _ = printed.splitlines()[-1].split()
        assert "=20" in printed
        if endpoint != "rdm":
            assert size * 8 / RATE_BPS < float(us) * 1e-6 < size * 8 / RATE_BPS + LATENCY_S
            assert float(mb_s) == pytest.approx(size / float(us), rel=0.05)


@needs("qperf", "qperf")
def test_qperf_measures_the_line(slow_lab: ProgramsLab) -> None:
    """It does not use GIDs, so that RoCE needs its option for librdmacm, as on hardware."""
    server = slow_lab.start(SERVER, "qperf")
    client = ("qperf", "-t", "1", "-cm", "1", SERVER)
    eventually(lambda: slow_lab.run(CLIENT, "qperf", SERVER, "conf").code == 0)
    for test in ("rc_bw", "rc_rdma_write_bw"):
        printed = slow_lab.prints(CLIENT, *client, test)
        found = re.search(r"bw  =  ([\d.]+) MB/sec", printed)
        assert found, printed
        assert 0.96 < float(found[1]) * 1e6 * 8 / SLOW_BPS < 1
    slow_lab.run(CLIENT, "qperf", SERVER, "quit")
    wait(server)


@needs("fio", "fio")
@pytest.mark.parametrize("verb", ["write", "read", "send"])
def test_fio_moves_its_bytes(lab: ProgramsLab, verb: str) -> None:
    """No block arrives faster than the line carries it."""
    receiver = lab.start(SERVER, *FIO, "--name=receiver", "--rw=read", "--iodepth=16")
    sends = (*FIO, "--name=sender", "--rw=write", "--iodepth=4", f"--hostname={SERVER}")
    jobs: list[dict[str, Any]] = []

    def sent() -> bool:
        """A sender that comes before the receiver listens fails, with any exit code."""
        ended = lab.run(CLIENT, *sends, f"--verb={verb}")
        jobs[:] = json.loads(ended.out[ended.out.index("{") :])["jobs"]
        return bool(jobs) and jobs[0]["write"]["io_bytes"] > 0

    eventually(sent)
    (job,) = jobs
    assert (job["error"], job["write"]["io_bytes"]) == (0, 1 << 20)
    assert job["write"]["clat_ns"]["min"] > BYTES * 8 / RATE_BPS * 1e9
    assert wait(receiver).code == 0
