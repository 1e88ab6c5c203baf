"""What programs see when something goes wrong: the statuses and events of the manual pages."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.support.exact_lab import EXACT, time_of
from tests.support.lab_fabrics import clos_spec
from tests.support.user import wait
from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab, programs_lab
from tests.support.waiting import eventually

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]

ACCESS_ERROR = "remote access error 136\nstate ERR\n"
ACCESS_EVENT = "local access violation work queue error\nstate ERR\n"
FINE = "state RTS\n"
TIMEOUT_14_MS = 4.096e-3 * 2**14
ATTEMPTS = 4
"""Of a request, by two_ends.h: three retries."""
CONVERGENCE_PS = 100_000_000
"""Of switches, unless a spec says otherwise."""
LONGEST_PAUSE_MS = 65535 * 512 / 100e9 * 1e3
"""At 100 Gbit/s (IEEE 802.1Qbb)."""


@pytest.fixture(scope="module")
def mistakes(open_folder: Path) -> str:
    return compiled("mistakes", open_folder)


@pytest.mark.parametrize(
    ("mistake", "client", "server"),
    [
        pytest.param("wrong_rkey", ACCESS_ERROR, ACCESS_EVENT, id="wrong rkey"),
        pytest.param("out_of_bounds", ACCESS_ERROR, ACCESS_EVENT, id="beyond the region"),
        pytest.param("denied_write", ACCESS_ERROR, ACCESS_EVENT, id="WRITE without access flag"),
        pytest.param("denied_read", ACCESS_ERROR, ACCESS_EVENT, id="READ without access flag"),
        pytest.param("wrong_lkey", "local protection error 81\nstate ERR\n", FINE, id="wrong lkey"),
        pytest.param(
            "small_receive",
            "remote invalid request error 138\nstate ERR\n",
            "receive: local length error 106\nstate ERR\n",
            id="receive too small",
        ),
        pytest.param(
            "no_receive", "RNR retry counter exceeded 135\nstate ERR\n", FINE, id="no receive"
        ),
        pytest.param("full_queue", "ENOMEM\nstate RTS\n", FINE, id="full send queue"),
        pytest.param(
            "overrun",
            "CQ error\nlocal work queue catastrophic error\npoll -1\nstate ERR\n",
            FINE,
            id="CQ overrun",
        ),
    ],
)
def test_mistake_has_the_status_of_the_manual(
    lab: ProgramsLab, mistakes: str, mistake: str, client: str, server: str
) -> None:
    printed = lab.pair((mistakes, mistake), (mistakes, mistake, "@h1"))
    assert printed == (f"listens\n{server}", client)


def test_lost_link_is_an_event_and_ends_the_retries(lab: ProgramsLab, mistakes: str) -> None:
    server = lab.start("h1", mistakes, "link_down")
    _read_until(server, "listens")
    client = lab.start("h3", mistakes, "link_down", "@h1")
    _read_until(client, "ready")
    _emu(lab, "fault", "set", "{name: cut, link-down: {cable: 'leaf2:h3'}}")
    seen = _read_until(client, "failed")
    assert seen == ["transport retry counter exceeded 129", "port error", "down"]
    _emu(lab, "fault", "clear", "cut")
    ended = wait(client)
    assert ended.out == "port active\nactive\nstate ERR\n", ended
    assert wait(server).out == FINE


def test_request_without_a_link_ends_with_its_retries(lab: ProgramsLab, mistakes: str) -> None:
    server = lab.start("h1", mistakes, "no_link")
    _read_until(server, "listens")
    client = lab.start("h3", mistakes, "no_link", "@h1")
    _read_until(client, "ready")
    _emu(lab, "fault", "set", "{name: cut, link-down: {cable: 'leaf2:h3'}}")
    ended = wait(client)
    _emu(lab, "fault", "clear", "cut")
    *seen, took, state = ended.out.splitlines()
    assert seen == ["port error", "down", "transport retry counter exceeded 129"], ended
    assert int(took.removesuffix(" us")) == pytest.approx(ATTEMPTS * 4.096 * 2**6, rel=0.01)
    assert state == "state ERR"
    assert wait(server).out == FINE


def test_fault_between_programs_is_over_when_cleared(lab: ProgramsLab, mistakes: str) -> None:
    """The switch and the NIC count the losses of the link, both the same."""
    both = (mistakes, "full_queue"), (mistakes, "full_queue", "@h1")
    printed = lab.pair(*both)
    _emu(lab, "fault", "set", "{name: cut, link-down: {cable: 'leaf1:h1'}}")
    _emu(lab, "fault", "clear", "cut")
    assert lab.pair(*both) == printed


def test_time_runs_between_programs_until_routes_have_changed(
    lab: ProgramsLab, mistakes: str
) -> None:
    lab.pair((mistakes, "full_queue"), (mistakes, "full_queue", "@h1"))
    _, before_ps = time_of(lab.user)
    _emu(lab, "fault", "set", "{name: cut, link-down: {cable: 'leaf1:spine1'}}")
    eventually(lambda: time_of(lab.user)[1] >= before_ps + CONVERGENCE_PS)
    _emu(lab, "fault", "clear", "cut")
    eventually(lambda: time_of(lab.user)[1] >= before_ps + 2 * CONVERGENCE_PS)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_links_may_change_while_programs_wait(
    open_folder: Path, mistakes: str, fabric: str
) -> None:
    """Nothing is on the way then but credit updates, which begin anew with the link."""
    with programs_lab(open_folder, clos_spec(fabric), *EXACT) as lab:
        server = lab.start("h1", mistakes, "no_receive")
        _read_until(server, "listens")
        for _ in range(4):
            _, before_ps = time_of(lab.user)
            _emu(lab, "fault", "set", "{name: cut, link-down: {cable: 'leaf1:h1'}}")
            eventually(lambda: time_of(lab.user)[1] >= before_ps + CONVERGENCE_PS)  # noqa: B023
            _emu(lab, "fault", "clear", "cut")
            eventually(lambda: time_of(lab.user)[1] >= before_ps + 2 * CONVERGENCE_PS)  # noqa: B023
        client = wait(lab.start("h3", mistakes, "no_receive", "@h1"))
        assert client.out == "RNR retry counter exceeded 135\nstate ERR\n", client
        assert wait(server).out == 4 * "port error\nport active\n" + FINE


@pytest.mark.parametrize(
    ("watchdog", "least_ms", "most_ms"),
    [
        pytest.param(None, 5, 5 + LONGEST_PAUSE_MS, id="without watchdog"),
        pytest.param(
            {"detection": "1ms", "restoration": "1ms", "poll": "1ms", "action": "drop"},
            *(TIMEOUT_14_MS, TIMEOUT_14_MS + LONGEST_PAUSE_MS),
            id="watchdog drops",
        ),
    ],
)
def test_pause_storm_delays_a_message(
    open_folder: Path,
    mistakes: str,
    watchdog: dict[str, str] | None,
    least_ms: float,
    most_ms: float,
) -> None:
    """To the end of the storm. A packet that the watchdog drops is sent again after the time-out
    of the queue pair."""
    switches: dict[str, Any] = {"pfc": "on"} | ({"watchdog": watchdog} if watchdog else {})
    with programs_lab(open_folder, clos_spec(**switches), *EXACT) as lab:
        server = lab.start("h1", mistakes, "storm")
        _read_until(server, "listens")
        client = lab.start("h3", mistakes, "storm", "@h1")
        _read_until(client, "ready")
        _emu(lab, "fault", "set", "{for: 5ms, pause-storm: {host: h1}}")
        (status, took_us), state = (line.split() for line in wait(client).out.splitlines())
        assert (status, state) == ("success", ["state", "RTS"])
        assert least_ms <= int(took_us) / 1000 <= most_ms
        assert wait(server).out == FINE


def test_wrong_partition_key_ends_the_retries(open_folder: Path, mistakes: str) -> None:
    """The server's queue pair drops the packets and says nothing (IBTA 10.9.3)."""
    blue = {"pkey": 5, "full": "all"}
    partitioned = json.loads(clos_spec("ib")) | {"subnet": {"partitions": {"blue": blue}}}
    with programs_lab(open_folder, json.dumps(partitioned), *EXACT) as lab:
        served, answered = lab.pair((mistakes, "pkey"), (mistakes, "pkey", "@h1"))
    assert answered == "transport retry counter exceeded 129\nstate ERR\n"
    assert served == f"listens\n{FINE}"


def _emu(lab: ProgramsLab, *words: str) -> None:
    ended = lab.user.run_emu(*words)
    assert ended.code == 0, ended.err


def _read_until(program: Popen[bytes], last: str) -> list[str]:
    """The lines before that line."""
    assert program.stdout is not None
    lines: list[str] = []
    for line in iter(program.stdout.readline, b""):
        if line.decode().rstrip() == last:
            return lines
        lines.append(line.decode().rstrip())
    raise AssertionError(f"no {last}: {lines}, {wait(program)}")
