"""Events as syslog messages: RFC 5424's grammar, and who logs what."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from emu.measure.counter_table import NIC, PORT
from emu.measure.snapshot_diff import Event
from emu.report.syslog import SEVERITIES, message_of, nodes_of
from tests.support.lab_fabrics import clos

NOW = datetime(2026, 11, 27, 10, 59, 1, 250_000, UTC)
RFC5424 = re.compile(
    r"<(\d{1,3})>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z [!-~]{1,255} [!-~]{1,48} - "
    r'[!-~]{1,32} \[[!-<>-~]+@\d+(?: [!-<>-~]+="(?:[^"\\\]]|\\["\\\]])*")*\] .+'
)
LOST = Event(4000, "link-down", "leaf1:spine1", {"cause": 'the fault "a]b\\c"'})


def test_a_message_has_the_form_of_rfc_5424() -> None:
    message = message_of(LOST, "leaf1", NOW).decode()
    found = RFC5424.fullmatch(message)
    assert found is not None
    assert int(found[1]) == 16 * 8 + 3
    assert message.startswith("<131>1 2026-11-27T10:59:01.250000Z leaf1 emu - link-down [emu@32473")
    assert 'where="leaf1:spine1" time_ns="4000"' in message
    assert r'cause="the fault \"a\]b\\c\""' in message


def test_both_ends_of_a_link_log_it() -> None:
    assert list(nodes_of(LOST, clos(2))) == ["leaf1", "spine1"]


@pytest.mark.parametrize(
    ("event", "where", "nodes"),
    [
        ("dropped-at-egress", "leaf1:h1", ["leaf1"]),
        ("timeout", "h2", ["h2"]),
        ("paused", "leaf1:h1", []),
        ("marked", "leaf1:h1", []),
        ("traffic-started", "", []),
        ("fault-set", "link-down-1", []),
    ],
)
def test_a_node_logs_what_it_can_see(event: str, where: str, nodes: list[str]) -> None:
    assert list(nodes_of(Event(0, event, where, {}), clos(2))) == nodes


def test_every_kind_of_drop_is_logged() -> None:
    """But those that the emulating machine causes."""
    drops = {row.event for table in (PORT, NIC) for row in table.drops() if row.event}
    assert drops <= SEVERITIES.keys()
