"""The metrics of hosts and switches, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from emu.fabric_kind import Framing
from emu.measure.counter_table import PORT
from emu.report.metrics import Seen, all_metrics, families, port_metrics
from tests.support.lab_fabrics import clos

DASHBOARD = Path(__file__).parents[2] / "examples/grafana/fabric.json"
NAME = re.compile(r"\bemu_\w+")
METRICS = {framing: {metric.name: metric for metric in all_metrics(framing)} for framing in Framing}


def seen_with(port: str, **cells: list[int]) -> Seen:
    """A lab that has counted at one port alone."""
    zeros = {name: [0] * width for name, width in PORT.cells.items()}
    return Seen(2_000_000_000_000, {port: zeros | cells}, {}, frozenset({port}))


def values_of(node: str, seen: Seen, framing: Framing) -> dict[str, dict[tuple[str, ...], float]]:
    found = families(node, seen, clos(2), framing)
    return {family.metric.name: dict(family.samples) for family in found}


@pytest.mark.parametrize("framing", Framing)
def test_names_end_with_what_they_are(framing: Framing) -> None:
    """Counters with _total and no other, times in seconds, and no number of a priority."""
    for name, metric in METRICS[framing].items():
        assert name.endswith("_total") == metric.is_counter, name
        assert not re.search(r"duration(?!_seconds)|Wait(?!_VL|_seconds)|prio[0-9N]", name), name
        assert "SAI" not in name


def test_names_are_those_of_the_counters() -> None:
    ethernet, infiniband = (port_metrics(framing) for framing in Framing)
    assert ethernet["rx_prioN_pause"].name == "emu_port_rx_prio_pause_total"
    assert ethernet["rx_prioN_pause"].labels == ("node", "port", "priority")
    assert ethernet["queue_peak_bytes"].name == "emu_port_queue_peak_bytes"
    assert ethernet["tx_prioN_bytes"].name == "emu_port_tx_prio_bytes_total"
    assert infiniband["PortXmitData"].name == "emu_port_PortXmitData_bytes_total"
    assert infiniband["PortXmitWait_VLN"].name == "emu_port_PortXmitWait_VL_seconds_total"
    assert infiniband["PortXmitWait_VLN"].labels == ("node", "port", "vl")


def test_values_are_in_seconds_and_bytes() -> None:
    """Pauses of 3 ms on priority 3, and 5 us of waiting for credit."""
    pauses = [0] * 8
    pauses[3] = 3_000_000_000
    seen = seen_with("leaf1:h1", rx_pause_duration=pauses, paused=[8 * 3_000_000_000])
    own = values_of("leaf1", seen, Framing.ETHERNET)
    key = ("leaf1", "leaf1:h1", "3")
    assert own["emu_port_rx_prio_pause_duration_seconds_total"][key] == pytest.approx(0.003)
    assert own["emu_time_seconds_total"] == {("leaf1",): 2.0}
    assert own["emu_port_up"][("leaf1", "leaf1:h1")] == 0.0
    assert own["emu_port_up"][("leaf1", "leaf1:h2")] == 1.0
    assert own["emu_port_speed_bytes"][("leaf1", "leaf1:h1")] == 12.5e9
    waits = seen_with("leaf1:h1", xmit_wait=[5_000_000] + [0] * 15)
    lane = values_of("leaf1", waits, Framing.INFINIBAND)["emu_port_PortXmitWait_seconds_total"]
    assert lane[("leaf1", "leaf1:h1")] == pytest.approx(5e-6)


def expressions() -> list[str]:
    """All queries of the dashboard."""
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    lists = [one["definition"] for one in dashboard["templating"]["list"] if "definition" in one]
    return panels + lists


def test_every_metric_of_the_dashboard_exists() -> None:
    known = set().union(*METRICS.values())
    used = {name for query in expressions() for name in NAME.findall(query)}
    assert len(used) > 15
    assert used <= known


def test_rates_of_the_dashboard_are_of_counters() -> None:
    """A rate of a gauge is nonsense."""
    counters = {n for own in METRICS.values() for n, metric in own.items() if metric.is_counter}
    for query in expressions():
        rated = re.findall(r"(?:rate|increase)\((\w+)", query)
        assert set(rated) <= counters, query


def test_prometheus_can_read_the_queries(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool; sudo apt-get install prometheus")
    queries = [one for one in expressions() if not one.startswith("label_values")]
    ready = [one.replace("$__rate_interval", "5m") for one in queries]
    rules = [{"record": f"own:query:{n}", "expr": one} for n, one in enumerate(ready)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "own", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)
