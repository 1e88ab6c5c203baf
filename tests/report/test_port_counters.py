"""`emu counters`: selected places, changes between two snapshots, and output formats."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from emu.cli.counters import command
from emu.errors import ExitCode, UsageError
from emu.fabric_kind import FABRIC_KINDS, Framing
from emu.measure.counter_table import PORT
from emu.measure.lab_snapshot import LabSnapshot, TrafficState
from emu.report.port_counters import Chosen, changes, counters_of, lines_of, shown
from emu.spec.model import Spec, spec_from_text
from topologies.graph import Topology

SPEC: Spec = spec_from_text(b"topology: {kind: dumbbell, hosts_per_side: 2}", source="pair.emu.yml")
TOPOLOGY: Topology = SPEC.topology.build()
PORTS = [TOPOLOGY.port_name[port] for s in TOPOLOGY.switches for port in TOPOLOGY.ports[s.name]]
ALL = Chosen(())


def look(time_ns: int, *, sent: int = 0, cnps: int = 0, number: int = 1) -> LabSnapshot:
    """A snapshot in which each port has sent `sent` packets of priority 3
    and each host `cnps` CNPs."""
    raw = {name: [0] * width for name, width in PORT.cells.items()}
    raw |= {"tx_packets": [0, 0, 0, sent] + [0] * 12, "queue_peak_bytes": [5000]}
    hosts = {host: {"np_cnp_sent": cnps} for host in TOPOLOGY.host}
    traffic = TrafficState(number, "running", None, ())
    return LabSnapshot(time_ns, dict.fromkeys(PORTS, raw), hosts, traffic)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((), [*PORTS, "h1", "h2", "h3", "h4"]),
        (("left:h1",), ["left:h1"]),
        (("left",), ["left:h1", "left:h2", "left:right"]),
        (("h3", "left:h2"), ["left:h2", "h3"]),
    ],
)
def test_places_are_ports_switches_and_hosts(places: tuple[str, ...], expected: list[str]) -> None:
    """Without names all places are shown, in the fabric's order."""
    counted = counters_of(look(0), TOPOLOGY, Framing.ETHERNET, Chosen(places))
    assert sorted(counted) == sorted(expected)


@pytest.mark.parametrize("place", ["left:h9", "lefd", "h9"])
def test_an_unknown_place_is_refused(place: str) -> None:
    """The error suggests a place or describes the names."""
    with pytest.raises(UsageError, match="there is no port, switch or host"):
        counters_of(look(0), TOPOLOGY, Framing.ETHERNET, Chosen((place,)))


@pytest.mark.parametrize(("fabric", "name"), [("roce", "tx_prio3_packets"), ("ib", "PortXmitPkts")])
def test_counter_names_are_those_of_the_fabric(fabric: str, name: str) -> None:
    """Ethernet has ethtool's names and InfiniBand the PMA's."""
    counted = counters_of(look(0, sent=7), TOPOLOGY, FABRIC_KINDS[fabric].framing, ALL)
    assert counted["left:h1"][name] == 7


def test_zeros_are_left_out_by_default() -> None:
    """A place without any count is still listed."""
    counted = counters_of(look(0), TOPOLOGY, Framing.ETHERNET, ALL)
    assert shown(counted, ALL)["left:h1"] == {"queue_peak_bytes": 5000}
    assert shown(counted, ALL)["h1"] == {}
    assert shown(counted, Chosen((), zeros=True))["h1"] == {"np_cnp_sent": 0}


def test_changes_are_counted_between_snapshots() -> None:
    """A peak is shown as it is, because it does not add up."""
    before, after = look(0, sent=5, cnps=2), look(1000, sent=12, cnps=3)
    earlier, later = (counters_of(one, TOPOLOGY, Framing.ETHERNET, ALL) for one in (before, after))
    changed = changes(before, earlier, after, later)
    assert changed["left:h1"]["tx_prio3_packets"] == 7
    assert changed["left:h1"]["queue_peak_bytes"] == 5000
    assert changed["h1"]["np_cnp_sent"] == 1


def test_new_traffic_counts_from_its_start() -> None:
    """Counters of new NICs begin at 0 and do not give negative changes."""
    before, after = look(0, sent=5, cnps=9), look(1000, sent=12, cnps=4, number=2)
    earlier, later = (counters_of(one, TOPOLOGY, Framing.ETHERNET, ALL) for one in (before, after))
    changed = changes(before, earlier, after, later)
    assert changed["h1"]["np_cnp_sent"] == 4
    assert changed["left:h1"]["tx_prio3_packets"] == 7


def test_each_counter_is_a_line() -> None:
    """The columns are aligned, and `explained` adds the meaning."""
    counted = shown(
        counters_of(look(0, sent=1234), TOPOLOGY, Framing.ETHERNET, Chosen(("left:h1",))), ALL
    )
    assert list(lines_of(counted, Framing.ETHERNET, explained=False)) == [
        "left:h1",
        "  tx_prio3_packets  1,234",
        "  queue_peak_bytes  5,000",
    ]
    explained = list(lines_of(counted, Framing.ETHERNET, explained=True))
    assert explained[1].endswith("1,234  Packets of priority 3 that were sent.")


class _Lab:
    """A stub for a running lab whose counters grow with every snapshot."""

    name = "pair"

    def __init__(self, name: str | None) -> None:
        self.looks = 0

    def __enter__(self) -> _Lab:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(spec=SPEC.to_json())


def _take_snapshot(lab: _Lab) -> LabSnapshot:
    lab.looks += 1
    return look(1000 * lab.looks, sent=10 * lab.looks, cnps=lab.looks)


@pytest.fixture
def _lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emu.daemon.client.LabClient", _Lab)
    monkeypatch.setattr("emu.daemon.client_snapshot.take_snapshot", _take_snapshot)


@pytest.mark.usefixtures("_lab")
def test_json_is_one_document() -> None:
    """The document has all counters, including zeros, and their time span."""
    result = CliRunner().invoke(command, ["--json", "left:h1", "h2", "--delta", "0.01"])
    document = json.loads(result.stdout)
    assert document["schema"] == "emu.counters/1"
    assert (document["time_ns"], document["over_ns"]) == (2000, 1000)
    assert document["ports"].keys() == {"left:h1"}
    assert document["ports"]["left:h1"]["tx_prio3_packets"] == 10
    assert document["ports"]["left:h1"]["no_route"] == 0
    assert document["hosts"] == {"h2": {"np_cnp_sent": 1}}


@pytest.mark.usefixtures("_lab")
def test_the_time_goes_to_stderr() -> None:
    """A script reads only counters from stdout."""
    result = CliRunner().invoke(command, ["h1"])
    assert result.stdout == "h1\n  np_cnp_sent  1\n"
    assert result.stderr == "pair: counted up to 1 us of emulated time\n"


def test_counters_without_a_lab_gets_a_remedy(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other verbs that need a lab have the same error."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = CliRunner().invoke(command, [])
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == ExitCode.USAGE
    assert "emu up SPEC" in str(result.exception)
