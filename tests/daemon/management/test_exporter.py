"""The exporter of every host and switch, read by a real Prometheus on the management network."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from emu.report.metrics import port_metrics
from emu.spec.model import spec_from_text
from tests.support.background_lab import at_home, lab_up
from tests.support.exact_lab import EXACT, emu, finish_traffic, refused
from tests.support.managed_lab import NODES, SPEC, fabric_counters, in_lab, said
from tests.support.needs import need
from tests.support.user import User, wait
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
_SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")


@pytest.fixture
def me(myself: User) -> User:
    need("nftables")
    return at_home(myself)


def metrics_of(user: User, node: str, port: int = 9100) -> dict[str, float]:
    """What a node exports: `name{labels}` -> its value."""
    text = said(user, "mgmt", "curl", "-sS", "--fail", f"http://{node}:{port}/metrics")
    found = filter(None, map(_SAMPLE.fullmatch, text.splitlines()))
    return {
        f"{name}{{{labels}}}": float(value) for name, labels, value in (m.groups() for m in found)
    }


@contextmanager
def prometheus(user: User) -> Iterator[None]:
    """Prometheus at the collector, with the lab's own configuration."""
    if shutil.which("prometheus") is None:
        pytest.skip("needs prometheus; sudo apt-get install prometheus")
    process = user.emu(
        *("exec", "mgmt", "--", "prometheus", "--config.file=/run/management/prometheus.yml"),
        *("--storage.tsdb.path=/run/prometheus", "--web.listen-address=127.0.0.1:9090"),
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        wait(process)


def ask(user: User, query: str) -> list[dict[str, Any]]:
    """What Prometheus answers; nothing if it is not up yet."""
    url = f"http://127.0.0.1:9090/api/v1/query?query={quote(query)}"
    ended = in_lab(user, "mgmt", "curl", "-s", url)
    if ended.code != 0 or not ended.out.startswith("{"):
        return []
    found: list[dict[str, Any]] = json.loads(ended.out).get("data", {}).get("result", [])
    return found


def value_of(user: User, query: str) -> float | None:
    """The value of a query with one result."""
    found = ask(user, query)
    return float(found[0]["value"][1]) if found else None


def test_prometheus_reads_what_emu_counters_shows(me: User) -> None:
    """All nodes are up, and once time stands the numbers are the same."""
    with lab_up(me, SPEC, *EXACT), prometheus(me):
        emu(me, "traffic", "start")
        finish_traffic(me)
        eventually(lambda: value_of(me, "sum(up)") == len(NODES))
        counted = fabric_counters(me)
        sent = counted["ports"]["leaf1:h1"]["tx_prio3_bytes"]
        assert sent > 150_000
        query = 'emu_port_tx_prio_bytes_total{port="leaf1:h1",priority="3"}'
        eventually(lambda: value_of(me, query) == sent)
        (found,) = ask(me, query)
        assert found["metric"]["instance"] == "leaf1:9100"
        assert (found["metric"]["node"], found["metric"]["lab"]) == ("leaf1", "managed")
        cnps = counted["hosts"]["h1"]["np_cnp_sent"]
        eventually(lambda: value_of(me, "emu_nic_np_cnp_sent_total") is not None)
        assert value_of(me, 'emu_nic_np_cnp_sent_total{node="h1"}') == cnps
        now = value_of(me, 'max(emu_time_seconds_total{node="leaf1"})')
        assert now == pytest.approx(counted["time_ns"] * 1e-9, abs=1e-9)


def test_every_counter_of_a_port_is_exported_with_its_unit(me: User) -> None:
    """On a priority in use: pauses, marks, watermarks; the same numbers as `emu counters`."""
    framing = spec_from_text(SPEC.encode(), source="managed.emu.yml").fabric_kind.framing
    with lab_up(me, SPEC, *EXACT):
        emu(me, "traffic", "start")
        finish_traffic(me)
        counted = fabric_counters(me)
        exported = {node: metrics_of(me, node) for node in NODES}
    for port, own in counted["ports"].items():
        node = port.partition(":")[0]
        for name, metric in port_metrics(framing).items():
            shown = name.replace("N", "3") if "prioN" in name else name
            labels = f'node="{node}",port="{port}"' + (',priority="3"' if shown != name else "")
            if shown in own:
                value = exported[node][f"{metric.name}{{{labels}}}"]
                assert value == pytest.approx(own[shown] * metric.per_unit), (port, name)
    assert exported["leaf1"]['emu_port_queue_peak_bytes{node="leaf1",port="leaf1:h1"}'] > 0


def test_its_text_is_what_prometheus_calls_clean(me: User, tmp_path: Path) -> None:
    """promtool's rules for names, types and units."""
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool; sudo apt-get install prometheus")
    with lab_up(me, SPEC, *EXACT):
        emu(me, "traffic", "start")
        finish_traffic(me)
        check = "curl -s http://{}:9100/metrics | promtool check metrics"
        for node in ("leaf1", "h1"):
            ended = in_lab(me, "mgmt", "sh", "-c", check.format(node))
            assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_storm_in_paused_time_does_not_reach_it(me: User) -> None:
    """M8: the agents answer whatever the fabric does, and while its time stands."""
    with lab_up(me, SPEC, *EXACT):
        emu(me, "pause")
        emu(me, "fault", "set", "pause-storm: {host: h1, priority: 3}")
        emu(me, "traffic", "start")
        emu(me, "step", "50us")
        exported = metrics_of(me, "leaf1")
        paused = 'emu_port_rx_prio_pause_total{node="leaf1",port="leaf1:h1",priority="3"}'
        assert exported[paused] > 0
        assert exported['emu_time_seconds_total{node="leaf1"}'] == pytest.approx(50e-6)
        assert metrics_of(me, "leaf1") == exported
        emu(me, "continue")


def test_it_can_be_moved_and_left_out(me: User) -> None:
    moved = SPEC.replace("management: on", "management: {exporter: {port: 9101}}")
    with lab_up(me, moved, *EXACT):
        assert metrics_of(me, "spine1", 9101)
    without = SPEC.replace("management: on", "management: {exporter: off}")
    with lab_up(me, without, *EXACT):
        assert in_lab(me, "mgmt", "curl", "-s", "-m", "1", "http://h1:9100").code != 0
        assert in_lab(me, "mgmt", "test", "-e", "/run/management/prometheus.yml").code == 1
        assert said(me, "mgmt", "ping", "-c", "1", "h1")


def test_a_slow_reader_holds_up_nobody(me: User) -> None:
    """Connections that ask nothing end by themselves, and others are answered meanwhile."""
    idle = (
        "import socket\n"
        "lines = [socket.create_connection(('leaf1', 9100)) for _ in range(20)]\n"
        "print(len(lines), flush=True)\n"
        "input()\n"
    )
    with lab_up(me, SPEC, *EXACT):
        waiting = me.emu("exec", "mgmt", "--", "python3", "-c", idle)
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"20\n"
        assert said(me, "mgmt", "curl", "-sS", "--max-time", "3", "http://leaf1:9100/metrics")
        wait(waiting)


def test_programs_at_the_collector_see_no_emulated_time(me: User) -> None:
    with lab_up(me, SPEC, "--set", "slowdown=1000"):
        assert "real time" in refused(me, "exec", "--emulated", "mgmt", "--", "true")
        assert said(me, "mgmt", "ls", "/sys/class/net").split() == ["lo", "mgmt0"]
