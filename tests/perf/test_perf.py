"""`emu perf` on the virtual clock: what it prints, and whether the numbers are right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.perf.figures import bandwidth, latency

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
LINK_BPS = 100e9
CABLE_NS = 25.0
"""5 m, the length of links unless told otherwise."""
SWITCH_NS = 600.0
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
"""On a link, beside the payload; of a READ's request and its lone response."""


def perf(*words: str) -> list[dict[str, float]]:
    """The rows that it prints, by the names of their columns, as perftest's readers take them."""
    ended = CliRunner().invoke(cli, ["perf", *words])
    assert ended.exit_code == 0, ended.output
    lines = ended.output.splitlines()
    (head,) = (place for place, text in enumerate(lines) if text.lstrip().startswith("#bytes"))
    names = re.split(r"\s{2,}| (?=#)", lines[head].strip())
    rows = [re.findall(NUMBER, text) for text in lines[head + 1 :] if re.match(r"\s*[0-9]", text)]
    return [dict(zip(names, map(float, row), strict=True)) for row in rows]


def _one_way_ns(fabric: str, kind: str, payload: int) -> float:
    """Over two links and a store-and-forward switch; a cut-through one spares a serialisation."""
    wire_ns = (WIRE_BYTES[fabric, kind] + -(-payload // 4) * 4) * 8e9 / LINK_BPS
    return 2 * wire_ns + 2 * CABLE_NS + SWITCH_NS


def _fabric(fabric: str, *changes: str) -> list[str]:
    settings = (f"fabric={fabric}", "switches.switching=store-and-forward", *changes)
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.parametrize("verb", ["write", "send"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_latency_is_half_a_ping_pong(fabric: str, verb: str) -> None:
    """Every one of them what the wire takes, and at most an ACK that goes before."""
    (row,) = perf(f"{verb}_lat", "-n", "100", "-s", "64", *_fabric(fabric))
    expected, ack = _one_way_ns(fabric, verb, 64) / 1000, 86 * 8 / LINK_BPS * 1e6
    for column in ("t_min[usec]", "t_typical[usec]", "t_avg[usec]", "99.9% percentile[usec]"):
        assert expected - 0.001 <= row[column] <= expected + ack + 0.001, column
    assert row["t_stdev[usec]"] <= ack


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_a_read_takes_two_ways_and_the_responders_memory(fabric: str) -> None:
    """Twice a write's latency, give or take the headers, plus what the far memory takes."""
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
    """Peak and average, and messages a second to match."""
    (row,) = perf("write_bw", "-n", "300", *_fabric(fabric))
    assert (row["#bytes"], row["#iterations"]) == (65536, 300)
    assert row["BW average[Gb/sec]"] == pytest.approx(100 * share, rel=0.002)
    assert row["BW average[Gb/sec]"] <= row["BW peak[Gb/sec]"] <= 100 * share * 1.001
    rate = row["BW average[Gb/sec]"] / (8 * 65536) * 1000
    assert row["MsgRate[Mpps]"] == pytest.approx(rate, rel=0.001)


@pytest.mark.parametrize("name", ["read_bw", "send_bw", "atomic_bw", "atomic_lat"])
def test_every_benchmark_has_its_line(name: str) -> None:
    """With the figures of its kind."""
    (row,) = perf(name, "-n", "20")
    assert row["#iterations"] == 20
    assert row.get("BW average[Gb/sec]", row.get("t_avg[usec]", 0)) > 0


def test_all_sizes_are_powers_of_two() -> None:
    """One line each; datagrams come to an end with the MTU."""
    rows = perf("write_lat", "--all", "-n", "2")
    assert [row["#bytes"] for row in rows] == [2.0**power for power in range(1, 24)]
    ended = CliRunner().invoke(cli, ["perf", "send_bw", "-c", "UD", "-s", "8192"])
    assert "a datagram is one packet" in str(ended.exception)


def test_a_specs_fabric_is_measured_without_its_traffic(tmp_path: Path) -> None:
    """Between the hosts that are named, as one JSON document."""
    spec = tmp_path / "slow.emu.yml"
    spec.write_text(
        "topology: {kind: dumbbell, hosts_per_side: 2, links: {fabric: {rate: 10Gbit}}}\n"
        "switches: {pfc: {}}\n"
        "traffic: [{name: other, pattern: pair, from: h1, to: h2, size: 1GB}]\n"
    )
    words = ["write_bw", str(spec), "--from", "h1", "--to", "h4", "-n", "20", "--json"]
    ended = CliRunner().invoke(cli, ["perf", *words])
    document = json.loads(ended.stdout)
    (line,) = document["results"]
    assert document["test"] == "write_bw"
    assert line["average_gbps"] == pytest.approx(9.8, rel=0.02)


def test_figures_of_known_messages() -> None:
    """Three messages of 1000 bytes, by hand; percentiles by numpy."""
    posted, over = np.array([0, 0, 100]), np.array([100, 200, 250])
    figures = bandwidth(1000, posted, over)
    assert figures.average_gbps == 8000 / (250 / 3)
    assert figures.peak_gbps == 8000 / min(100, 200, 200 / 2, 250 / 3, 250 / 2, 150)
    took = np.random.default_rng(1).permutation(np.arange(1.0, 1998))
    row = latency(8, took)
    assert row.t_avg == pytest.approx(np.mean(took) / 1000)
    assert row.t_stdev == pytest.approx(np.std(took) / 1000)
    assert row.p99 == np.percentile(took, 99, method="inverted_cdf") / 1000
    assert row.p999 == np.percentile(took, 99.9, method="inverted_cdf") / 1000
