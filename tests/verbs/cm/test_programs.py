"""librdmacm's own programs and perftest on hosts of a lab on the exact clock, unmodified."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.background_lab import at_home, capturing, lab_up, status_of
from tests.support.tshark import MALFORMED, number, tshark
from tests.support.user import Ended, User, wait
from tests.support.waiting import eventually

SPEC = """
name: connections
fabric: FABRIC
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}
"""
SERVER = "10.0.0.1"
PAIRS = (
    ("rping -s -C 2 -q", f"rping -c -a {SERVER} -C 2 -q"),
    ("ucmatose -c 3", f"ucmatose -c 3 -s {SERVER}"),
    ("ucmatose", f"ucmatose -m -s {SERVER}"),
    ("udaddy", f"udaddy -s {SERVER}"),
    ("rdma_server", f"rdma_client -s {SERVER}"),
)
CALLS = Path(__file__).with_name("cm_calls.c")
_EINVAL, _BUSY = "-1 Invalid argument", "-1 Address already in use"
_AGAIN, _UNSUPPORTED = "-1 Resource temporarily unavailable", "-1 Operation not supported"
RETURNS = [
    f"a port space of IPoIB: {_UNSUPPORTED}",
    "bind: 0 -",
    "port: 5000, device: no",
    f"bind to the same port: {_BUSY}",
    "bind to another's address: -1 No such device",
    "bind to any port: 0 -",
    "has a port: yes, device: yes",
    "listen: 0 -",
    f"listen again: {_EINVAL}",
    "destroy: 0 -",
    "destroy: 0 -",
    f"route before address: {_EINVAL}",
    f"connect before address: {_EINVAL}",
    f"accept without request: {_EINVAL}",
    f"reject without request: {_EINVAL}",
    f"disconnect without connection: {_EINVAL}",
    f"attributes without connection: {_EINVAL}",
    f"too deep: {_EINVAL}",
    f"too much private data: {_EINVAL}",
    f"multicast: {_UNSUPPORTED}",
    f"request without listener: {_EINVAL}",
    "passive: 0 -",
    "type: 4, source: yes",
    "by name: 0 -",
    "address: 10.0.0.2, space: 0x106",
    f"no event: {_AGAIN}",
    "poll before: 0 -",
    "resolve: 0 -",
    "poll after: 1",
    "event: 0 -",
    "kind: RDMA_CM_EVENT_ADDR_RESOLVED",
    f"no other event: {_AGAIN}",
    *("resolve: 0 -", "poll after: 1", "destroy: 0 -", "poll after that: 0 -"),
    *("resolve: 0 -", "destroy: 0 -", "acknowledged: yes"),
    *("bind: 0 -", "listen: 0 -", *3 * ["connect: 0 -"], "event: 0 -"),
    "kind: RDMA_CM_EVENT_REJECTED, status: 28, last: yes",
    "destroy: 0 -",
]
_ATTEMPTS = 50
"""Of a client whose server does not listen yet."""
REQ, REP, RTU, DREQ, DREP = 0x10, 0x13, 0x14, 0x15, 0x16

pytestmark = [
    pytest.mark.skipif(
        shutil.which(program) is None, reason=f"needs {program}: apt-get install {package}"
    )
    for program, package in (("rping", "rdmacm-utils"), ("ib_write_bw", "perftest"))
]


@pytest.fixture(params=["roce", "ib"])
def me(myself: User, request: pytest.FixtureRequest) -> Iterator[User]:
    user = at_home(myself)
    with lab_up(user, SPEC.replace("FABRIC", request.param), "--clock", "exact"):
        yield user


def _on(host: str, command: str) -> tuple[str, ...]:
    return ("exec", host, "--", *command.split())


def _run_pair(user: User, server: str, client: str) -> tuple[Ended, Ended]:
    """Both to their ends. A client that comes just before the server listens is rejected. Then both
    begin anew, as the server may have accepted some of several connections."""
    for _ in range(_ATTEMPTS):
        serving = _started(user, server)
        ended = user.run_emu(*_on("h2", client))
        if ended.code == 0:
            return wait(serving), ended
        os.killpg(serving.pid, signal.SIGKILL)  # its child is the program
        wait(serving)
    pytest.fail(f"{client}: {ended}")


def _started(user: User, server: str) -> subprocess.Popen[bytes]:
    """The server, which has opened its NIC, or has ended."""
    eventually(lambda: not _programs(user))
    serving = user.emu(*_on("h1", server))
    eventually(lambda: "h1" in _programs(user) or serving.poll() is not None)
    return serving


def _programs(user: User) -> dict[str, int]:
    """How many programs on each host use its NIC."""
    programs: dict[str, int] = status_of(user)[0]["programs"]
    return programs


def test_programs_of_librdmacm_run_to_their_end(me: User) -> None:
    for server, client in PAIRS:
        served, asked = _run_pair(me, server, client)
        assert (served.code, asked.code) == (0, 0), (server, served, asked)


def test_pings_arrive_whole(me: User) -> None:
    """The host's name leads to the management network. It means the host's NIC all the same."""
    served, asked = _run_pair(me, "rping -s -a h1 -C 5 -v", "rping -c -a h1 -C 5 -v")
    assert (served.code, asked.code) == (0, 0), (served, asked)
    assert served.out.count("server ping data: rdma-ping-") == 5
    assert asked.out.count("ping data: rdma-ping-") == 5


@pytest.mark.parametrize("me", ["roce"], indirect=True)
def test_perftest_connects_by_librdmacm(me: User) -> None:
    for program in ("ib_write_bw", "ib_send_lat", "ib_read_bw -q 2", "ib_send_bw -c UD"):
        command = f"{program} -R -F -n 100"
        served, asked = _run_pair(me, command, f"{command} {SERVER}")
        assert (served.code, asked.code) == (0, 0), (program, served, asked)


def test_connection_to_a_port_without_listener_is_rejected(me: User) -> None:
    ended = me.run_emu(*_on("h2", f"rping -c -a {SERVER} -C 1"))
    assert ended.code != 0
    assert "RDMA_CM_EVENT_REJECTED, error 8" in ended.out + ended.err


def test_address_of_no_host_is_an_error(me: User) -> None:
    ended = me.run_emu(*_on("h2", "rping -c -a 10.9.9.9 -C 1"))
    assert ended.code != 0
    assert "RDMA_CM_EVENT_ADDR_ERROR, error -113" in ended.out + ended.err


def test_end_of_a_program_disconnects_the_other(me: User) -> None:
    server = me.emu("exec", "h1", "--", "bash", "-c", "echo $$; exec rping -s -P")
    assert server.stdout
    pid = server.stdout.readline().decode().strip()
    client = _endless_client(me)
    assert me.run_emu(*_on("h1", f"kill -9 {pid}")).code == 0
    ended = wait(client)
    assert "client DISCONNECT EVENT" in ended.out + ended.err
    server.communicate()


def _endless_client(user: User) -> subprocess.Popen[bytes]:
    """A client that has exchanged data with the server."""
    command = f"stdbuf -oL rping -c -a {SERVER} -v -C 1000000000"
    for _ in range(_ATTEMPTS):
        client = user.emu(*_on("h2", command))
        assert client.stdout
        if client.stdout.readline().startswith(b"ping data"):
            return client
        client.communicate()
    pytest.fail("the server never listened")


@pytest.mark.parametrize("me", ["roce"], indirect=True)
def test_calls_return_what_the_manual_pages_say(me: User) -> None:
    program = me.home.parent / "cm_calls"
    options = [
        "-Wall",
        "-Werror",
        "-o",
        str(program),
        str(CALLS),
        "-lrdmacm",
        "-libverbs",
        "-lpthread",
    ]
    subprocess.run(["gcc", *options], check=True)
    ended = me.run_emu(*_on("h1", str(program)))
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == RETURNS


@pytest.mark.parametrize("me", ["roce"], indirect=True)
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark")
def test_tshark_sees_the_connection(me: User) -> None:
    file = me.home.parent / "connection.pcapng"
    with capturing(me, "leaf1:h1", file):
        _run_pair(me, "rping -s -C 1", f"rping -c -a {SERVER} -C 1")
    assert _attributes(file)[-5:] == [REQ, REP, RTU, DREQ, DREP]


def _attributes(file: Path) -> list[int]:
    rows = tshark(file, ["infiniband.bth.destqp", "infiniband.mad.attributeid"])
    messages = [row for row in rows if row["infiniband.mad.attributeid"]]
    assert {row[MALFORMED] for row in messages} == {""}
    assert {number(row["infiniband.bth.destqp"]) for row in messages} == {1}
    return [number(row["infiniband.mad.attributeid"]) for row in messages]
