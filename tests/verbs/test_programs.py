"""The table of programs in docs/guide/verbs-programs.md: each row runs Debian's program,
unmodified, between two hosts of a lab, and must print what the page says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.background_lab import capturing
from tests.support.exact_lab import EXACT, REAL
from tests.support.lab_fabrics import clos_spec
from tests.support.printed import fields
from tests.support.tshark import number, tshark
from tests.support.user import make_user, may_be_anybody
from tests.support.verbs_programs import ProgramsLab, programs_lab
from tests.verbs.program_table import Row, figure_in, rows

SERVER, CLIENT = "h1", "h3"
SPECS = {"RoCE": clos_spec("roce"), "InfiniBand": clos_spec("ib")}
CLOCKS = {"exact": EXACT, "real": REAL}
ROWS = sorted(rows(), key=lambda row: (row.clock, row.fabric))

ROCE_BYTES = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 12
"""Preamble, Ethernet, IPv4, UDP, BTH, ICRC, FCS and gap (IEEE 802.3, IBTA Annex A17)."""
RETH_BYTES = 16
"""In the first packet of an RDMA WRITE."""
RATE_BPS, MTU = 100e9, 4096
OPCODE, SEND_ONLY, ACKNOWLEDGE = "infiniband.bth.opcode", 0x04, 0x11
MB = 1 << 20
"""perftest's."""
TOLERANCE = 0.02
"""Of one run against another: on a busy machine emulated time may pass for some microseconds while
a program computes."""
LAST_DIGIT = 0.015
"""Times are printed to 0.01 µs, so two of the same may differ by that."""


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


pytestmark = needs("ib_write_bw", "ibv_rc_pingpong")


LabOf = Callable[[str, str], ProgramsLab]


@pytest.fixture(scope="module")
def lab_of(open_folder: Path, lab_machine: None) -> Iterator[LabOf]:
    """The lab of a fabric on a clock. It is up until a test wants another one."""
    with ExitStack() as stack:
        present: dict[tuple[str, str], ProgramsLab] = {}

        def find(fabric: str, clock: str) -> ProgramsLab:
            if (fabric, clock) not in present:
                stack.close()
                present.clear()
                lab = programs_lab(open_folder, SPECS[fabric], *CLOCKS[clock])
                present[fabric, clock] = stack.enter_context(lab)
            return present[fabric, clock]

        yield find


@pytest.fixture
def roce(lab_of: LabOf) -> ProgramsLab:
    return lab_of("RoCE", "exact")


def row_of(command: str, fabric: str) -> Row:
    """Its row on the exact clock."""
    (row,) = (
        one for one in ROWS if (one.command, one.fabric, one.clock) == (command, fabric, "exact")
    )
    return row


def figure_of(lab: ProgramsLab, row: Row) -> float:
    """What the client prints."""
    words = row.words()
    return figure_in(lab.pair(words, [*words, SERVER], (SERVER, CLIENT))[1])


@pytest.mark.parametrize(
    "row",
    ROWS,
    ids=[f"{row.fabric}-{row.clock}-{row.command}".replace(" ", "_") for row in ROWS],
)
def test_program_prints_what_the_page_says(lab_of: LabOf, row: Row) -> None:
    """On the real clock the page says that it ends well: its figures are this machine's."""
    figure = figure_of(lab_of(row.fabric, row.clock), row)
    assert figure > 0
    if row.figure is None:
        assert (row.clock, row.printed) == ("real", "ends well")
    else:
        assert figure == pytest.approx(row.figure, rel=TOLERANCE, abs=LAST_DIGIT)


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_send_bw", "ib_read_bw"])
def test_bandwidths_are_the_payload_share_of_the_line(program: str) -> None:
    """A message of 64 KB is 16 packets, on RoCE of 4096 bytes and their headers. The page's rows
    are checked against what the programs print."""
    packets = 65536 // MTU
    has_reth = RETH_BYTES if program != "ib_send_bw" else 0
    wire = 65536 + packets * ROCE_BYTES + has_reth
    row = row_of(f"{program} -n 500", "RoCE")
    assert row.figure == pytest.approx(RATE_BPS / 8 * 65536 / wire / MB, rel=0.01)


def perf_us(tmp_path: Path, fabric: str, benchmark: str) -> float:
    """The typical latency that `emu perf` says, on the same fabric between the same hosts."""
    spec = tmp_path / "fabric.emu.yml"
    spec.write_text(SPECS[fabric])
    user = make_user(tmp_path, ordinary=not may_be_anybody())
    ended = user.run_emu("perf", benchmark, spec, "--from", CLIENT, "--to", SERVER, "--json")
    assert ended.code == 0, ended.err
    return float(json.loads(ended.out)["results"][0]["t_typical"])


@pytest.mark.parametrize("fabric", SPECS)
@pytest.mark.parametrize("benchmark", ["write_lat", "send_lat", "read_lat", "atomic_lat"])
def test_latencies_are_those_of_emu_perf(tmp_path: Path, fabric: str, benchmark: str) -> None:
    """The page's rows are checked against what the programs print."""
    row = row_of(f"ib_{benchmark} -n 200", fabric)
    assert row.figure == pytest.approx(
        perf_us(tmp_path, fabric, benchmark), rel=0.02, abs=LAST_DIGIT
    )


def test_devices_are_listed(roce: ProgramsLab) -> None:
    devices = roce.prints(SERVER, "ibv_devices")
    assert devices.split()[-2:] == ["emu_0", "00000afffe000001"]
    described = roce.prints(SERVER, "ibv_devinfo", "-v")
    for line in ("PORT_ACTIVE (4)", "4096 (5)", "::ffff:10.0.0.1, RoCE v2", "25.0 Gbps (32)"):
        assert line in described


@needs("ibstat", "ibv_devinfo")
@pytest.mark.parametrize(("fabric", "lanes"), [("RoCE", "invalid value"), ("InfiniBand", "1 (1)")])
def test_the_library_and_sys_show_the_same_device(lab_of: LabOf, fabric: str, lanes: str) -> None:
    """ibv_devinfo asks the library, ibstat reads /sys."""
    lab = lab_of(fabric, "exact")
    asked = fields(lab.prints(SERVER, "ibv_devinfo", "-v"))
    read = fields(lab.prints(SERVER, "ibstat"))
    assert asked["fw_ver"] == read["Firmware version"]
    for name, shown in [
        ("port_lid", "Base lid"),
        ("sm_lid", "SM lid"),
        ("port_lmc", "LMC"),
        ("port_cap_flags", "Capability mask"),
        ("node_guid", "Node GUID"),
    ]:
        assert hexadecimal(asked[name]) == hexadecimal(read[shown]), name
    assert asked["max_vl_num"].startswith(lanes)


def hexadecimal(text: str) -> int:
    return int(text.replace(":", ""), 16)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ibv_xsrq_pingpong -g 0", "an XRC domain is not emulated"),
        ("ibv_rc_pingpong -g 0 -o", "isn't ODP capable"),
    ],
)
def test_what_is_missing_is_refused(roce: ProgramsLab, command: str, why: str) -> None:
    left = Path("/tmp/xrc_domain")  # ibv_xsrq_pingpong makes it, and leaves it there
    before = left.exists()
    ended = roce.run(SERVER, "env", "EMU_VERBS_DEBUG=1", *command.split())
    if not before:
        left.unlink(missing_ok=True)
    assert ended.code != 0
    assert why in ended.out + ended.err


@needs("tshark")
@pytest.mark.parametrize(
    ("fabric", "option", "field", "value"),
    [
        pytest.param("RoCE", "--tclass=104", "ip.dsfield.dscp", 104 >> 2, id="traffic class"),
        pytest.param("InfiniBand", "--sl=3", "infiniband.lrh.sl", 3, id="service level"),
    ],
)
def test_packets_are_in_the_class_of_the_program(
    lab_of: LabOf, tmp_path: Path, fabric: str, option: str, field: str, value: int
) -> None:
    """Messages and their acknowledgements, as tshark reads them."""
    lab, file = lab_of(fabric, "exact"), tmp_path / "capture"
    words = ["ib_send_lat", "-F", "-n", "5", option]
    with capturing(lab.user, f"leaf1:{SERVER}", file):
        lab.pair(words, [*words, SERVER], (SERVER, CLIENT))
    packets = [row for row in tshark(file, [field, OPCODE]) if row[OPCODE]]
    assert {number(row[OPCODE]) for row in packets} == {SEND_ONLY, ACKNOWLEDGE}
    assert {number(row[field]) for row in packets} == {value}


@needs("/usr/bin/python3")
def test_pyverbs_moves_data_by_every_transport(roce: ProgramsLab) -> None:
    command = ("/usr/bin/python3", str(Path(__file__).parents[1] / "support/pyverbs_peer.py"), "0")
    served, answered = roce.pair(command, (*command, SERVER), (SERVER, CLIENT))
    assert served == answered
    assert [line.split(":")[0] for line in served.splitlines()] == [
        *("queries", "refusals", "RC", "UC", "SRQ", "UD", "extended")
    ]
