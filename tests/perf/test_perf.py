"""`emu perf` on the virtual clock: its output, and its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.errors import ExitCode, SpecError, UsageError
from emu.explain.results_schema import schema
from emu.perf.benchmark import NAMES
from emu.perf.figures import bandwidth, latency

PAIR = str(Path(__file__).parents[2] / "topologies" / "pair.emu.yml")
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
LINK_BPS = 100e9
CABLE_NS = 25.0
"""The delay of 5 m, the default length of links."""
SWITCH_NS = {"roce": 600.0, "ib": 90.0}
"""Default latencies at 100 Gbit/s, which is EDR on InfiniBand."""
WIRE_BYTES = {
    ("roce", "write"): 98,
    ("roce", "send"): 82,
    ("roce", "request"): 98,
    ("roce", "response"): 86,
    ("ib", "write"): 42,
    ("ib", "send"): 26,
    ("ib", "request"): 42,
    ("ib", "response"): 30,
}
"""Bytes on a link in addition to the payload; of a READ: of its request and of its only
response."""


def perf(*words: str) -> list[dict[str, float]]:
    """The rows of the output, by column name, as perftest's parsers read them."""
    ended = CliRunner().invoke(cli, ["perf", *words])
    assert ended.exit_code == 0, ended.output
    lines = ended.output.splitlines()
    (head,) = (place for place, text in enumerate(lines) if text.lstrip().startswith("#bytes"))
    names = re.split(r"\s{2,}| (?=#)", lines[head].strip())
    rows = [re.findall(NUMBER, text) for text in lines[head + 1 :] if re.match(r"\s*[0-9]", text)]
    return [dict(zip(names, map(float, row), strict=True)) for row in rows]


def _one_way_ns(fabric: str, kind: str, payload: int) -> float:
    """Over two links and a store-and-forward switch; a cut-through switch saves one
    serialisation."""
    wire_ns = (WIRE_BYTES[fabric, kind] + -(-payload // 4) * 4) * 8e9 / LINK_BPS
    return 2 * wire_ns + 2 * CABLE_NS + SWITCH_NS[fabric]


def _fabric(fabric: str, *changes: str) -> list[str]:
    settings = (f"fabric={fabric}", "switches.switching=store-and-forward", *changes)
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.parametrize("verb", ["write", "send"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_latency_is_half_a_ping_pong(fabric: str, verb: str) -> None:
    """All of them equal the time on the wire, plus one ACK in front at most."""
    (row,) = perf(f"{verb}_lat", "-n", "100", "-s", "64", *_fabric(fabric))
    expected, ack = _one_way_ns(fabric, verb, 64) / 1000, 86 * 8 / LINK_BPS * 1e6
    for column in ("t_min[usec]", "t_typical[usec]", "t_avg[usec]", "99.9% percentile[usec]"):
        assert expected - 0.001 <= row[column] <= expected + ack + 0.001, column
    assert row["t_stdev[usec]"] <= ack


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_read_latency_is_two_ways_and_remote_memory(fabric: str) -> None:
    """About twice a write's latency, plus the time that the remote memory takes."""
    path = "hosts.path={kind: gpudirect, doorbell: 0ns, read: 700ns, write: 0ns, completion: 0ns}"
    there = [*_fabric(fabric, path), "-n", "50"]
    (write,), (read,) = perf("write_lat", *there), perf("read_lat", *there)
    typical = "t_typical[usec]"
    assert read[typical] == pytest.approx(2 * write[typical], rel=0.05)
    (plain_write,), (plain_read,) = (
        perf(name, *_fabric(fabric), "-n", "50") for name in ("write_lat", "read_lat")
    )
    ways_us = _one_way_ns(fabric, "request", 0) + _one_way_ns(fabric, "response", 2)
    assert plain_read[typical] == pytest.approx(ways_us / 1000, abs=0.003)
    assert plain_read[typical] == pytest.approx(2 * plain_write[typical], rel=0.05)
    pcie_ns = 0.01  # two short packets through 504 Gb/s
    assert read[typical] - plain_read[typical] == pytest.approx(0.7 + 0.7, abs=pcie_ns)


@pytest.mark.parametrize(
    ("fabric", "share"),
    [("roce", 16 * 4096 / (16 * 4178 + 16)), ("ib", 16 * 4096 / (16 * 4122 + 16))],
)
def test_bandwidth_is_the_links_less_headers(fabric: str, share: float) -> None:
    """Peak and average, and the corresponding message rate."""
    (row,) = perf("write_bw", "-n", "300", *_fabric(fabric))
    assert (row["#bytes"], row["#iterations"]) == (65536, 300)
    assert row["BW average[Gb/sec]"] == pytest.approx(100 * share, rel=0.002)
    assert row["BW average[Gb/sec]"] <= row["BW peak[Gb/sec]"] <= 100 * share * 1.001
    rate = row["BW average[Gb/sec]"] / (8 * 65536) * 1000
    assert row["MsgRate[Mpps]"] == pytest.approx(rate, rel=0.001)


@pytest.mark.parametrize("name", ["read_bw", "send_bw", "atomic_bw", "atomic_lat"])
def test_every_benchmark_prints_a_row(name: str) -> None:
    """With the figures of its kind."""
    (row,) = perf(name, "-n", "20")
    assert row["#iterations"] == 20
    assert row.get("BW average[Gb/sec]", row.get("t_avg[usec]", 0)) > 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["write_bw", "-t", "7"],
            ["RDMA_Write BW Test", "Connection type : RC", "TX depth        : 7", "Mtu : 4096[B]"],
        ),
        (
            ["send_lat", "-c", "UD", "--set", "hosts.nodes.h2.nic.mtu=1024", "--set", "fabric=ib"],
            ["Send Latency Test", "Connection type : UD", "Mtu : 1024[B]", "Link type : IB"],
        ),
        (
            ["read_bw", "--from", "h2", "--to", "h1"],
            ["RDMA_Read BW Test", "Device : h2", "Outstand reads : 16", "remote address: h1"],
        ),
        (["atomic_lat"], ["Atomic FETCH_AND_ADD Latency Test", "Link type : Ethernet"]),
    ],
)
def test_perftests_header_precedes_the_columns(words: list[str], expected: list[str]) -> None:
    """The parameters of the test, as parsers expect them: name, colon, value."""
    output = CliRunner().invoke(cli, ["perf", *words, "-n", "2"]).output
    above = " ".join(output.partition("#bytes")[0].split())
    for line in expected:
        assert " ".join(line.split()) in above


def test_loss_is_reported_beside_the_figures() -> None:
    """A bandwidth reduced by retransmissions is not the link's."""
    slow = ["--set", "topology.links.fabric.rate=10Gbit", "--set", "hosts.nic.timeout=8"]
    ended = CliRunner().invoke(cli, ["perf", "write_bw", PAIR, "-n", "50", *slow])
    assert ended.exit_code == 0
    assert ended.stderr.startswith("65536 bytes: Loss: left:right dropped ")
    assert "Loss" not in ended.stdout


def test_all_sizes_are_powers_of_two() -> None:
    """One row each."""
    rows = perf("write_lat", "--all", "-n", "2")
    assert [row["#bytes"] for row in rows] == [2.0**power for power in range(1, 24)]


def test_datagram_sizes_end_at_the_mtu() -> None:
    """The MTU is the default size of a bandwidth test and the last of all sizes; the narrower NIC's
    counts."""
    narrow = ["-c", "UD", "-n", "2", "--set", "hosts.nodes.h2.nic.mtu=1024"]
    assert [row["#bytes"] for row in perf("send_bw", *narrow)] == [1024]
    assert [row["#bytes"] for row in perf("send_lat", *narrow)] == [2]
    for name in ("send_bw", "send_lat"):
        rows = perf(name, "-a", *narrow)
        assert [row["#bytes"] for row in rows] == [2.0**power for power in range(1, 11)]


CARRIED = {
    "RC": {"write", "read", "send", "atomic"},
    "UC": {"write", "send"},
    "UD": {"send"},
}
"""The verbs of each transport, by the operation codes of IBTA vol 1, 9.2."""


@pytest.mark.parametrize("transport", CARRIED)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "asked", [[], ["-s", "8"], ["-s", "16"], ["-s", "4097"], ["-a"], ["-t", "7"]], ids=" ".join
)
def test_impossible_test_is_refused_by_its_option(
    name: str, transport: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any output, and before a run. All other combinations are measured."""
    monkeypatch.setattr("emu.cli.perf._measured", lambda *_: iter(()))
    ended = CliRunner().invoke(cli, ["perf", name, "-c", transport, *asked])
    verb, figure = name.split("_")
    impossible = (
        verb not in CARRIED[transport]
        or (verb == "atomic" and asked in (["-s", "16"], ["-s", "4097"], ["-a"]))
        or (transport == "UD" and asked == ["-s", "4097"])
        or (figure == "lat" and asked == ["-t", "7"])
    )
    if not impossible:
        assert ended.exit_code == 0, ended.output
        return
    assert isinstance(ended.exception, UsageError)
    assert ended.stdout == ""
    error = str(ended.exception)
    assert any(option in error for option in (f"-c {transport}", " ".join(asked) or "-c")), error
    assert "traffic" not in error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "send_bw -c UD -s 5000",
            "-s 5000 with -c UD: a datagram is one packet, and between h1 and h2 the MTU is 4096; "
            "send less, or use -c UC",
        ),
        ("write_bw -c UD", "-c UD has no write; measure write_bw with -c RC or -c UC"),
        ("write_bw -a -s 7", "-s 7 and -a: these exclude each other; leave one of them out"),
        ("write_bw --from h9", "--from: there is no host 'h9'; there is h1, h2"),
        ("write_bw --to all", "--to all: is 2 hosts; name one, e.g. h1"),
        ("write_bw --to h1", "h1 would send to itself; name another host by --from or --to"),
        (
            "write_bw --set traffic.0.size=9",
            "--set traffic.0.size: emu perf has its own traffic; leave it out",
        ),
        (
            "write_bw --set hosts.stack=tcp",
            "hosts.stack: tcp, but emu perf measures RDMA; add --set hosts.stack=rdma",
        ),
    ],
)
def test_wrong_use_is_explained(words: str, expected: str) -> None:
    """The option, the problem, and a correction."""
    ended = CliRunner().invoke(cli, ["perf", *words.split()])
    assert (str(ended.exception), ended.stdout) == (expected, "")
    assert isinstance(ended.exception, UsageError)


@pytest.mark.parametrize("words", ["-s 0", "-s 2147483649", "-n 100001", "-t 0", "-t 100001"])
def test_numbers_out_of_range_are_refused(words: str) -> None:
    """By the option's name; perftest has no empty messages either."""
    ended = CliRunner().invoke(cli, ["perf", "write_bw", *words.split()])
    assert ended.exit_code == ExitCode.USAGE
    assert f"Invalid value for '{words.split()[0]}'" in ended.output


def test_unsuitable_setting_names_no_spec_file() -> None:
    """There is none."""
    ended = CliRunner().invoke(cli, ["perf", "read_bw", "--set", "hosts.nic.cc=dctcp"])
    assert isinstance(ended.exception, SpecError)
    assert ended.stdout == ""
    assert str(ended.exception).startswith(
        "read_bw -c RC -s 65536 -n 1000 on perf: READ responses are not acknowledged, so h2 with "
        "cc: dctcp would never slow down"
    )


def test_only_real_payloads_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual clock measures 100 GB, because its messages have no payload."""
    monkeypatch.setattr("emu.cli.perf._measured", lambda *_: iter(()))
    monkeypatch.setattr("emu.resources.machine_memory_bytes", lambda: 16_000_000_000)
    words = ["perf", "write_bw", "-s", "1000000", "-n", "100000"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    error = str(CliRunner().invoke(cli, [*words, "--clock", "real"]).exception)
    assert "sends 100 GB, for which 200 GB of memory are needed at least" in error


def test_fabric_of_a_spec_is_measured_without_its_traffic(tmp_path: Path) -> None:
    """Between the named hosts, as one JSON document."""
    spec = tmp_path / "slow.emu.yml"
    spec.write_text(
        "topology: {kind: dumbbell, hosts_per_side: 2, links: {fabric: {rate: 10Gbit}}}\n"
        "switches: {pfc: {}}\n"
        "traffic: [{name: other, pattern: pair, from: h1, to: h2, size: 1GB}]\n"
    )
    words = ["write_bw", str(spec), "--from", "h1", "--to", "h4", "-n", "20", "--json"]
    ended = CliRunner().invoke(cli, ["perf", *words])
    document = json.loads(ended.stdout)
    jsonschema.validate(document, schema("perf"))
    (line,) = document["results"]
    assert document["test"] == "write_bw"
    assert line["average_gbps"] == pytest.approx(9.8, rel=0.02)


def test_traffic_of_the_spec_is_ignored(tmp_path: Path) -> None:
    """Even if it does not fit this fabric."""
    spec = tmp_path / "away.emu.yml"
    spec.write_text(
        "topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 8}\n"
        "traffic: [{name: other, pattern: pair, from: h7, to: h8, size: 1GB}]\n"
        "verify: [{finish: {by: 1ms}}]\n"
        "compare: {ib: {fabric: ib, traffic: [{name: other, pattern: pair, from: h5, to: h6, "
        "size: 1MB}]}}\n"
    )
    rows = perf("write_lat", str(spec), "-n", "2", "--set", "topology.hosts_per_leaf=2")
    assert len(rows) == 1


def test_pinned_flows_of_the_spec_are_refused(tmp_path: Path) -> None:
    """The flows do not exist; with another routing the test runs."""
    spec = tmp_path / "pinned.emu.yml"
    spec.write_text(
        "topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 1}\n"
        "switches: {routing: {kind: pinned, paths: {other: spine1}}}\n"
        "traffic: [{name: other, pattern: pair, from: h1, to: h2, size: 1MB}]\n"
    )
    ended = CliRunner().invoke(cli, ["perf", "write_lat", str(spec)])
    assert str(ended.exception) == (
        f"{spec}:2:44: switches.routing.paths.other: there is no flow called 'other', nor any "
        "other; use routing: {kind: ecmp}"
    )
    assert len(perf("write_lat", str(spec), "--set", "switches.routing={kind: ecmp}")) == 1


def test_figures_match_known_messages() -> None:
    """Three messages of 1000 bytes, by hand; percentiles by numpy."""
    posted, over = np.array([0, 0, 100]), np.array([100, 200, 250])
    figures = bandwidth(1000, posted, over)
    assert figures.average_gbps == 8000 / (250 / 3)
    assert figures.peak_gbps == 8000 / min(100, 200, 200 / 2, 250 / 3, 250 / 2, 150)
    took = np.random.default_rng(1).permutation(np.arange(1.0, 1998))
    row = latency(8, took)
    assert row.t_avg == pytest.approx(np.mean(took) / 1000)
    assert row.t_stdev == pytest.approx(np.std(took) / 1000)
    assert row.p99 == pytest.approx(np.percentile(took, 99) / 1000)
    assert row.p999 == pytest.approx(np.percentile(took, 99.9) / 1000)
