"""The ping-pong of libibverbs' examples: its handshake, and a run on the virtual clock."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import pytest

from emu.errors import RemoteProtocolError, UsageError
from emu.rdma import Lab
from emu.rdma.names import QPType
from emu.rdma.pingpong import End, PingPong, PingPongConfig

OF_LINUX = b"0000:000011:248e8e:00000000000000000000ffff0a090001\0"
"""The handshake of ibv_rc_pingpong on rxe with the address 10.9.0.1."""
SPEC = Path(__file__).parents[2] / "topologies" / "pair.emu.yml"


def test_handshake_line_of_linux_round_trips() -> None:
    end = End.parse(OF_LINUX)
    assert (end.qp_num, end.psn, end.address) == (0x11, 0x248E8E, int(IPv4Address("10.9.0.1")))
    assert end.line() == OF_LINUX


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"GET / HTTP/1.1\0", "says nothing about a queue pair"),
        (b"0000:000011:248e8e:fe80000000000000286104fffe59e610\0", "holds no IPv4 address"),
    ],
)
def test_invalid_handshake_line_is_refused(line: bytes, error: str) -> None:
    with pytest.raises(RemoteProtocolError, match=error):
        End.parse(line)


@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC])
def test_every_new_message_comes_back(qp_type: QPType) -> None:
    """The client sends new bytes each time, the server returns them; sizes need not be round."""
    config = PingPongConfig(qp_type, size=9_999, iterations=20, mtu=1024, timeout=14)
    with Lab(SPEC) as lab:
        client, server = (PingPong(lab.host(name).rdma, config) for name in ("h1", "h2"))
        client.connect(server.qp.end)
        server.connect(client.qp.end)

        async def both() -> tuple[int, int]:
            ours = client.run(Random(1), is_client=True)
            from_client, from_server = await asyncio.gather(ours, server.run(None, is_client=False))
            return from_client, from_server

        assert lab.run(both()) == (20, 0)


def test_packets_larger_than_the_mtu_are_refused() -> None:
    config = PingPongConfig(QPType.RC, size=64, iterations=1, mtu=4096, timeout=14)
    error = "packets of 1024 bytes, and these are of 4096"
    with Lab(SPEC, "hosts.nic.mtu=1024") as lab, pytest.raises(UsageError, match=error):
        PingPong(lab.host("h1").rdma, config)
