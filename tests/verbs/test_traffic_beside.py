"""The spec's traffic and programs have the same NICs, one after the other."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exact_lab import EXACT
from tests.support.lab_fabrics import clos_spec
from tests.support.user import wait
from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab, programs_lab
from tests.support.waiting import eventually

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]

FLOW = {"name": "long", "pattern": "pair", "from": "h1", "to": "h4", "size": "2GB"}


@pytest.fixture
def lab(open_folder: Path) -> Iterator[ProgramsLab]:
    spec = json.dumps(json.loads(clos_spec()) | {"traffic": [FLOW], "time_limit": "10s"})
    with programs_lab(open_folder, spec, *EXACT) as up:
        yield up


def test_traffic_and_programs_take_turns(lab: ProgramsLab, open_folder: Path) -> None:
    mistakes = compiled("mistakes", open_folder)
    emu = lab.user.run_emu
    program = lab.start("h2", mistakes, "full_queue")
    assert program.stdout is not None
    assert program.stdout.readline() == b"listens\n"
    refused = emu("traffic", "start")
    assert refused.code == 2
    assert "verbs programs use the hosts' NICs: 1 on h2; end them" in refused.err
    os.killpg(program.pid, signal.SIGKILL)
    wait(program)
    eventually(lambda: emu("traffic", "start").code == 0)
    without = lab.run("h2", mistakes, "full_queue")
    assert without.code == 1
    line, _ = without.err.splitlines()
    assert line == (
        "emu verbs: no connection to this host's NIC: the lab's traffic uses the NICs; "
        "run `emu traffic stop` first"
    )
    assert emu("traffic", "stop").code == 0
    printed = lab.pair((mistakes, "full_queue"), (mistakes, "full_queue", "@h1"))
    assert printed[1] == "ENOMEM\nstate RTS\n"


def test_counters_of_hosts_are_those_of_programs(lab: ProgramsLab, open_folder: Path) -> None:
    mistakes = compiled("mistakes", open_folder)
    before = lab.user.run_emu("counters", "h1")
    assert "they count from `emu traffic start`, or the first verbs program, on" in before.err
    lab.pair((mistakes, "full_queue"), (mistakes, "full_queue", "@h1"))
    hosts = json.loads(lab.user.run_emu("counters", "--json").out)["hosts"]
    assert hosts["h3"]["tx_packets"] == hosts["h1"]["rx_packets"] > 0
    assert hosts["h2"]["tx_packets"] == 0
