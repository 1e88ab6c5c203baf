"""Fabrics as text of other programs: export, import, and errors of wrong text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.cli.main import cli
from emu.errors import SpecError, UsageError
from emu.ib_rates import LANE_BPS, WIDTHS, IbRate
from emu.spec.model import spec_from_text
from emu.subnet.netfile import net_file
from topologies.fat_tree import fat_tree
from topologies.graph import Builder, Topology, Wire
from topologies.text import hpcc, ibnetdiscover

Reader = Callable[[str, str], object]
IB_RATES = [IbRate(width * lane, width) for width in WIDTHS for lane in LANE_BPS.values()]


@st.composite
def fabrics(draw: st.DrawFn, rates: st.SearchStrategy[int]) -> Topology:
    """A random tree of switches with additional cables, and hosts on any of them."""
    builder = Builder()
    switches = [builder.add_switch(f"s{n}", "s") for n in range(1, draw(st.integers(1, 6)) + 1)]

    def cable(a: str, b: str) -> None:
        builder.add_cable(a, b, Wire(draw(rates), draw(st.integers(0, 10**10))))

    for place, switch in enumerate(switches[1:], start=1):
        cable(switches[draw(st.integers(0, place - 1))], switch)
    for _ in range(draw(st.integers(0, 5)) if len(switches) > 1 else 0):
        cable(*draw(st.lists(st.sampled_from(switches), min_size=2, max_size=2, unique=True)))
    for _ in range(draw(st.integers(1, 12))):
        cable(draw(st.sampled_from(switches)), builder.add_host())
    return builder.topology()


def fits_a_net_file(rate: IbRate) -> bool:
    names = ("SDR", "DDR", "QDR", "FDR", "EDR", "HDR")
    return any(int(rate) == rate.width * LANE_BPS[name] for name in names)


def cables_of(topology: Topology, *, delays: bool = True) -> Counter[object]:
    """Each cable by its ends' names, rate and delay."""
    return Counter(
        (frozenset((cable.a.node, cable.b.node)), cable.rate_bps, cable.delay_ps * delays)
        for cable in topology.cables
    )


def imported(read: Callable[[str, str], object], text: str) -> Topology:
    section = read(text, "fabric.txt").section()  # type: ignore[attr-defined]
    return spec_from_text(section.encode(), source="fabric.emu.yml").topology.build()


@given(fabrics(st.integers(10**6, 10**13)))
@settings(max_examples=40, deadline=None)
def test_hpcc_text_round_trips(topology: Topology) -> None:
    """Names, rates and delays."""
    back = imported(hpcc.read, hpcc.write(topology))
    assert set(back.switch) == set(topology.switch)
    assert set(back.host) == set(topology.host)
    assert cables_of(back) == cables_of(topology)


@given(fabrics(st.sampled_from(IB_RATES)))
@settings(max_examples=40, deadline=None)
def test_ibnetdiscover_text_round_trips(topology: Topology) -> None:
    """All but delays, which it does not contain."""
    back = imported(ibnetdiscover.read, ibnetdiscover.write(topology))
    assert set(back.switch) == set(topology.switch)
    assert set(back.host) == set(topology.host)
    assert cables_of(back, delays=False) == cables_of(topology, delays=False)


def test_net_file_of_ibsim_is_read() -> None:
    """Its ids are the names, and its speeds are those that a port has enabled."""
    host, edge, core = (Wire(LANE_BPS[speed] * 4, 0) for speed in ("EDR", "HDR", "QDR"))
    topology = fat_tree(4, host_wire=host, edge_wire=edge, core_wire=core)
    back = imported(ibnetdiscover.read, net_file(topology))
    assert cables_of(back, delays=False) == cables_of(topology, delays=False)


@given(fabrics(st.sampled_from([rate for rate in IB_RATES if fits_a_net_file(rate)])))
@settings(max_examples=40, deadline=None)
def test_net_file_round_trips_widths_and_speeds(topology: Topology) -> None:
    """Of all that ibsim has words for."""
    back = imported(ibnetdiscover.read, net_file(topology))
    assert cables_of(back, delays=False) == cables_of(topology, delays=False)


@pytest.mark.parametrize(
    ("above", "own", "far", "rate"),
    [
        ("", "", "", ""),
        ("", "w=1", "w=1", "1x SDR"),
        ("", "s=7", "", "4x SDR"),
        ("", "w=3 s=7 e=1", "w=2 s=7 e=2", "4x QDR"),
        ("", "w=15 s=7 e=7", "w=8 s=7 e=3", "12x EDR"),
        ("width=1\nspeed=7\nextspeed=2\n", "", "", "1x EDR"),
        ("width=1\nspeed=7\n", "w=16", "w=16 s=2", "2x DDR"),
        ("", "w=1 s=7 # 4xHDR", "w=1 s=7", "4x HDR"),
    ],
)
def test_link_runs_at_what_both_ends_support(above: str, own: str, far: str, rate: str) -> None:
    """An option of a link precedes a default of the file; without either it is 4x SDR."""
    text = f'{above}Switch 8 "s1"\n[1] "h1"[1] {own}\n\nHca 1 "h1"\n[1] "s1"[1] {far}\n'
    assert [link.rate for link in ibnetdiscover.read(text, "net").links] == [rate]


@pytest.mark.parametrize(
    ("own", "far", "missing"),
    [("w=8", "", "width (w=)"), ("w=32", "w=32", "width (w=)"), ("s=6", "", "speed (s=, e=)")],
)
def test_link_ends_without_a_common_speed_are_an_error(own: str, far: str, missing: str) -> None:
    """ibsim itself would exit."""
    text = f'Switch 8 "s1"\n[1] "h1"[1] {own}\n\nHca 1 "h1"\n[1] "s1"[1] {far}\n'
    error = f"net:2:1: has no {missing} enabled that its far end has; give both ends the same"
    with pytest.raises(SpecError) as refused:
        ibnetdiscover.read(text, "net")
    assert str(refused.value) == error


HPCC = """4 1 3
3
0 3 100Gbps 1000ns 0
1 3 25Gbps 0.5us 0.000000
3 2 400000Mbps 1us 0
"""


def test_numbers_of_hpcc_become_names() -> None:
    """Rates and delays as in ns-3; a note lists the number of each node."""
    net = hpcc.read(HPCC, "fabric.txt")
    assert (
        net.section()
        == """# s1: node 3
# h1: node 0
# h2: node 1
# h3: node 2
topology:
  kind: graph
  switches: [s1]
  hosts: [h1, h2, h3]
  links:
    - {between: [h1, s1], rate: 100Gbit, delay: 1us}
    - {between: [h2, s1], rate: 25Gbit, delay: 500ns}
    - {between: [s1, h3], rate: 400Gbit, delay: 1us}
"""
    )


REAL = """# a switch and two servers, one with two ports of one adapter
vendid=0x2c9
switchguid=0xec0d9a0300b4c3a0(ec0d9a0300b4c3a0)
Switch\t36 "S-ec0d9a0300b4c3a0"\t\t# "MF0;ib-sw-01:MSB7800/U1" enhanced port 0 lid 3 lmc 0
[1]\t"H-0c42a10300a1b2c4"[1](c42a10300a1b2c4) \t\t# "node01 mlx5_0" lid 5 4xHDR
[2]\t"H-0c42a10300a1b2c4"[2](c42a10300a1b2c5) \t\t# "node01 mlx5_0" lid 6 4xHDR
[36][ext 18]\t"H-0c42a10300a1b2d4"[1](c42a10300a1b2d4) \t\t# "h1" lid 7 2xHDR

caguid=0xc42a10300a1b2c4
Ca\t2 "H-0c42a10300a1b2c4"\t\t# "node01 mlx5_0"
[1](c42a10300a1b2c4) \t"S-ec0d9a0300b4c3a0"[1]\t\t# lid 5 lmc 0 "MF0;ib-sw-01" lid 3 4xHDR
[2](c42a10300a1b2c5) \t"S-ec0d9a0300b4c3a0"[2]\t\t# lid 6 lmc 0 "MF0;ib-sw-01" lid 3 4xHDR

caguid=0xc42a10300a1b2d4
Ca\t1 "H-0c42a10300a1b2d4"\t\t# "h1"
[1](c42a10300a1b2d4) \t"S-ec0d9a0300b4c3a0"[36]\t\t# lid 7 lmc 0 "MF0;ib-sw-01" lid 3 2xHDR
"""


def test_invalid_names_are_replaced_and_noted() -> None:
    """Each port of an adapter is a host; a valid name stays."""
    net = ibnetdiscover.read(REAL, "fabric.txt")
    assert net.switches == ("s1",)
    assert net.hosts == ("h2", "h3", "h1")
    assert net.origin == {
        "s1": "MF0;ib-sw-01:MSB7800/U1 (S-ec0d9a0300b4c3a0)",
        "h2": "node01 mlx5_0 (H-0c42a10300a1b2c4)",
        "h3": "node01 mlx5_0 (H-0c42a10300a1b2c4)",
    }
    assert [link.rate for link in net.links] == ["4x HDR", "4x HDR", "2x HDR"]


@pytest.mark.parametrize(
    ("read", "text", "findings"),
    [
        (hpcc.read, "", ["1: the first line has three numbers"]),
        (hpcc.read, "4 1\n", ["1: the first line has three numbers"]),
        (hpcc.read, HPCC.replace("4 1 3", "9 1 3"), ["1: 3 links are too few for 9 nodes"]),
        (hpcc.read, HPCC.replace("4 1 3", "5 1 3"), ["1: host 4 has no link; add one"]),
        (hpcc.read, HPCC.replace("4 1 3", "4 2 3"), ["2: the second line has the numbers of 2"]),
        (hpcc.read, HPCC.replace("4 1 3", "4 1 4"), ["5: there are 3 links, not 4; correct"]),
        (
            hpcc.read,
            HPCC.replace("1 3 25", "1 7 25").replace("100Gbps 1000ns 0", "fast late 0.01"),
            [
                "3: delay 'late' is not understood; write it like 1000ns",
                "3: loss 0.01: cables lose nothing here; put 0, and a loss into faults:",
                "3: rate 'fast' is not understood; write it like 100Gbps",
                "4: a link is two nodes below 4, rate, delay, loss",
            ],
        ),
        (hpcc.read, HPCC.replace("3 2 4", "1 2 4"), ["4: host 1 has 2 links", "5: host 1 has 2"]),
        (hpcc.read, HPCC.replace("3 2 4", "2 2 4"), ["5: joins 2 to itself; a link needs"]),
        (ibnetdiscover.read, "", ["1: has no node; each begins with a line like Switch"]),
        (ibnetdiscover.read, '[1] "H-1"[1]', ["1: has no node", "1: is a port before any node"]),
        (
            ibnetdiscover.read,
            REAL.replace("[36][ext 18]", "[2]").replace("vendid=0x2c9", "vendor Mellanox"),
            [
                "2: is neither a node, like Switch 8",
                "7: port 2 of S-ec0d9a0300b4c3a0 has a cable already; take one of them out",
                "16: leads to port 36 of S-ec0d9a0300b4c3a0, which does not lead back to port 1",
            ],
        ),
        (
            ibnetdiscover.read,
            REAL.replace("Switch\t36", "Rt\t36").replace("4xHDR", "4xHXR", 1),
            [
                "4: routers are not emulated; take it out, and its cables",
                "5: '4xHXR': there is no HXR; there is SDR",
            ],
        ),
        (
            ibnetdiscover.read,
            REAL + 'Ca 1 "H-9"\nSwitch 2 "S-2"\n[3] "H-9"[1]\n[1] "H-8"[1]\n',
            [
                "17: H-9 has no cable; list one below, or take the node out",
                "19: S-2 has ports 1 to 2, not 3",
                "20: leads to 'H-8', which is not there; add that node",
            ],
        ),
    ],
)
def test_every_wrong_line_is_reported_with_its_number(
    read: Reader, text: str, findings: list[str]
) -> None:
    """The problem and a remedy; all lines at once, in order."""
    with pytest.raises(SpecError) as caught:
        read(text, "fabric.txt")
    assert len(caught.value.findings) == len(findings)
    for found, expected in zip(caught.value.findings, findings, strict=True):
        line, _, what = expected.partition(": ")
        assert found.startswith(f"fabric.txt:{line}:1: {what}")


@pytest.mark.parametrize(("read", "text"), [(hpcc.read, HPCC), (ibnetdiscover.read, REAL)])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_arbitrary_text_crashes_no_reader(read: Reader, text: str, data: st.DataObject) -> None:
    """Any text, and valid text with some of it replaced, is read or refused with a reason."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 40, len(text))))
    piece = data.draw(st.text(max_size=12) | st.text('0123456789 \n"[]xGbps#', max_size=12))
    with suppress(SpecError):
        read(text[:start] + piece + text[end:], "fabric.txt")


def test_rate_without_an_infiniband_equivalent_is_refused() -> None:
    """By the cable's name."""
    builder = Builder()
    leaf = builder.add_switch("leaf1", "leaf")
    builder.add_hosts(leaf, 1, Wire(30 * 10**9, 0))
    with pytest.raises(UsageError, match="leaf1:h1: 30Gbit is no rate of an InfiniBand link; give"):
        ibnetdiscover.write(builder.topology())


@pytest.mark.parametrize("form", ["hpcc", "ibnetdiscover", "ibsim"])
def test_command_line_round_trips(form: str, tmp_path: Path) -> None:
    """It exports a shipped spec, and imports a spec with the same fabric."""
    spec = Path(__file__).parents[2] / "topologies" / "incast.emu.yml"
    out = CliRunner().invoke(cli, ["topology", "export", str(spec), "--format", form])
    (tmp_path / "fabric").write_text(out.stdout)
    back = CliRunner().invoke(cli, ["topology", "import", str(tmp_path / "fabric")])
    assert (out.exit_code, back.exit_code) == (0, 0)
    made = spec_from_text(back.stdout.encode(), source="back.emu.yml").topology.build()
    meant = spec_from_text(spec.read_bytes(), source="incast.emu.yml").topology.build()
    delays = form == "hpcc"
    assert cables_of(made, delays=delays) == cables_of(meant, delays=delays)


def test_rates_unknown_to_ibsim_are_noted() -> None:
    """On stderr, with the rate written instead; 25 Gbit is a single lane of EDR."""
    spec = str(Path(__file__).parents[2] / "topologies" / "incast.emu.yml")
    words = ["topology", "export", spec, "--format", "ibsim", "--set"]
    rates = "topology.links={host: {rate: 30Gbit}, fabric: {rate: 400Gbit}}"
    assert sorted(CliRunner().invoke(cli, [*words, rates]).stderr.splitlines()) == [
        "30Gbit: ibsim has no such rate; the file has 4x DDR instead",
        "400Gbit: ibsim has no such rate; the file has 4x HDR instead",
    ]
    rates = "topology.links={host: {rate: 25Gbit}, fabric: {rate: 4x QDR}}"
    assert CliRunner().invoke(cli, [*words, rates]).stderr == ""


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A missing file, and one that is no text."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, why in (("none", "No such file"), ("bytes", "it is not text")):
        result = CliRunner().invoke(cli, ["topology", "import", str(tmp_path / name)])
        assert isinstance(result.exception, UsageError)
        assert why in str(result.exception)


def test_imported_switches_have_tiers_as_roles(tmp_path: Path) -> None:
    """Their names have no meaning. The keys of a role replace those of a tier."""
    file = tmp_path / "net.txt"
    links = ["0 2", "1 3", "2 4", "3 4"]
    rows = [f"{ends} 100Gbps 1000ns 0" for ends in links]
    file.write_text("\n".join(["5 3 4", "2 3 4", *rows]))
    imported = CliRunner().invoke(cli, ["topology", "import", str(file)])
    assert "# tier1, as `switches.roles` knows it: s1, s2\n" in imported.stdout
    assert "# tier2, as `switches.roles` knows it: s3\n" in imported.stdout
    switches = "switches: {buffer: 1MB, roles: {tier1: {buffer: 2MB}, tier2: {buffer: 3MB}}}\n"
    text = f"{imported.stdout}{switches}".encode()
    spec = spec_from_text(text, source="imported.emu.yml")
    sizes = {name: spec.switch(name).buffer_bytes for name in ("s1", "s2", "s3")}
    assert sizes == {"s1": 2_000_000, "s2": 2_000_000, "s3": 3_000_000}
    by_role = spec_from_text(
        text, source="imported.emu.yml", settings=["switches.roles.s.buffer=4MB"]
    )
    assert {by_role.switch(name).buffer_bytes for name in sizes} == {4_000_000}
    with pytest.raises(SpecError, match="no role 'tier3'"):
        spec_from_text(
            text, source="imported.emu.yml", settings=["switches.roles.tier3.buffer=4MB"]
        )
