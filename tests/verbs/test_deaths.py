"""Programs that die: nothing of them stays in the NICs, and nobody else is disturbed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exact_lab import EXACT, REAL
from tests.support.lab_fabrics import clos_spec
from tests.support.user import wait
from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_nics import NOTHING, holdings, nics_of, resident_kb
from tests.support.verbs_programs import ProgramsLab, programs_lab
from tests.support.waiting import eventually

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]

DEATHS = 100
MORE_KB = 1500
"""Python's own. Each dead program had some 1000."""


@pytest.fixture(scope="module", params=["exact", "real"])
def lab(open_folder: Path, request: pytest.FixtureRequest) -> Iterator[ProgramsLab]:
    words = EXACT if request.param == "exact" else REAL
    spec = json.dumps(json.loads(clos_spec()) | {"slowdown": 500})
    with programs_lab(open_folder, spec, *words) as up:
        yield up


@pytest.fixture(scope="module")
def deaths(open_folder: Path) -> str:
    return compiled("deaths", open_folder)


@pytest.fixture(scope="module")
def mistakes(open_folder: Path) -> str:
    return compiled("mistakes", open_folder)


def test_nothing_stays_of_killed_programs(lab: ProgramsLab, deaths: str) -> None:
    """They die at any moment, from the connection to traffic with many objects."""
    lab.prints("h1", deaths, str(DEATHS))
    nics = nics_of(lab.user)
    eventually(lambda: holdings(nics) == NOTHING)
    before_kb = resident_kb(nics)
    lab.prints("h1", deaths, str(DEATHS))
    eventually(lambda: holdings(nics) == NOTHING)
    assert nics_of(lab.user) == nics
    assert resident_kb(nics) < before_kb + MORE_KB


def test_programs_work_beside_dying_ones(lab: ProgramsLab, deaths: str, mistakes: str) -> None:
    """On the same host, and between others."""
    dying = lab.start("h1", deaths, str(DEATHS))
    for hosts in (("h1", "h3"), ("h2", "h4")):
        client = (mistakes, "full_queue", f"@{hosts[0]}")
        served, answered = lab.pair((mistakes, "full_queue"), client, hosts)
        assert answered == "ENOMEM\nstate RTS\n"
        assert served == "listens\nstate RTS\n"
    assert wait(dying).code == 0


def test_peer_of_a_killed_program_retries_in_vain(lab: ProgramsLab, mistakes: str) -> None:
    server = lab.start("h1", mistakes, "peer_dies")
    assert server.stdout is not None
    assert server.stdout.readline() == b"listens\n"
    client = lab.start("h3", mistakes, "peer_dies", "@h1")
    assert client.stdout is not None
    assert client.stdout.readline() == b"ready\n"
    os.killpg(server.pid, signal.SIGKILL)
    wait(server)
    assert wait(client).out == "transport retry counter exceeded 129\n"


def test_time_does_not_wait_for_a_killed_program(lab: ProgramsLab, mistakes: str) -> None:
    """Its NIC still sends the responses that are due."""
    server = lab.start("h1", mistakes, "dies_in_a_call")
    assert server.stdout is not None
    assert server.stdout.readline() == b"listens\n"
    assert lab.prints("h3", mistakes, "dies_in_a_call", "@h1") == 2 * "success 0\n"
    assert wait(server).code != 0
    eventually(lambda: holdings(nics_of(lab.user)) == NOTHING)
