"""Our end of every exchange with Linux' soft RoCE: `python -m tests.vm.ours INTERFACE RXE`.

One process carries out all exchanges in the order of `GAMES`, because Python starts slowly in the
machine. It prints the result of each as a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import numpy as np

from emu.rdma.attributes import QPAttr
from emu.rdma.context import Context
from emu.rdma.external_nic import nic_on
from emu.rdma.names import AccessFlag, QPType, WROpcode
from emu.rdma.pingpong import PingPong, PingPongConfig, exchange_and_connect, open_connection
from emu.rdma.work import SendWR
from tests.vm.games import GAMES, MEMORY_BYTES, ONE_SIDED, PORT, Pingpong, one_line

_SLOWDOWN = 100
_TIMEOUT = 13
"""4.096 us * 2^13 * slowdown: an ACK may take three seconds."""
_TRIES = 400
"""Attempts to connect, half a second apart."""
_ANYTHING = AccessFlag.LOCAL_WRITE | AccessFlag.REMOTE_WRITE | AccessFlag.REMOTE_READ


def main(interface: str, rxe: str) -> None:
    for game in GAMES:
        tell(game.name, asyncio.run(play(game, interface, rxe)))
    tell(ONE_SIDED, asyncio.run(write_and_read(interface, rxe)))


def tell(name: str, result: dict[str, Any]) -> None:
    print(json.dumps({"name": name} | result), flush=True)


async def play(wanted: Pingpong, interface: str, rxe: str) -> dict[str, Any]:
    """Exchange messages with `ibv_rc_pingpong` or `ibv_uc_pingpong`, started by the test."""
    config = PingPongConfig(
        QPType[wanted.transport.upper()], wanted.size, wanted.iterations, wanted.mtu, _TIMEOUT
    )
    with meeting(rxe if wanted.we_call else None, interface, rxe) as (line, nic):
        ping_pong = PingPong(nic, config)
        exchange_and_connect(line, ping_pong, is_client=wanted.we_call)
        returned = await ping_pong.run(Random(1), is_client=wanted.we_call)
        return {"returned": returned, "counters": nic.counters}


async def write_and_read(interface: str, rxe: str) -> dict[str, Any]:
    """WRITE to rxe's memory and READ it back; then rxe does the same with ours."""
    with meeting(rxe, interface, rxe) as (line, nic):
        pd = nic.alloc_pd()
        out = np.frombuffer(Random(2).randbytes(MEMORY_BYTES), np.uint8).copy()
        back, lent = (np.zeros(MEMORY_BYTES, np.uint8) for _ in range(2))
        ours = [pd.reg_mr(array, _ANYTHING) for array in (out, back, lent)]
        cq = nic.create_cq(16)
        qp = pd.create_qp(QPType.RC, cq)
        own = {"qpn": qp.end.qp_num, "psn": qp.end.psn, "addr": ours[2].addr, "rkey": ours[2].rkey}
        line.sendall(one_line(own))
        file = line.makefile("r")
        far = json.loads(file.readline())
        qp.to_init()
        qp.to_rtr(
            QPAttr(
                dest_qp_num=far["qpn"], rq_psn=far["psn"], dest_address=far["address"],
                path_mtu=1024, max_dest_rd_atomic=1,
            )
        )  # fmt: skip
        qp.to_rts(QPAttr(timeout=_TIMEOUT, retry_cnt=7, max_rd_atomic=1))
        for opcode, region in ((WROpcode.RDMA_WRITE, ours[0]), (WROpcode.RDMA_READ, ours[1])):
            there = {"remote_addr": far["addr"], "rkey": far["rkey"]}
            qp.post_send(SendWR(opcode, region.sge(), **there))
            (await cq.wait()).succeeded()
        line.sendall(one_line({"turn": "yours"}))
        theirs = json.loads(await asyncio.to_thread(file.readline))
        return {
            "we_read_what_we_wrote": bool((back == out).all()),
            "they_read_what_they_wrote": theirs["same"],
            "it_lies_in_our_memory": bool((lent == theirs["byte"]).all()),
            "counters": nic.counters,
        }


@contextmanager
def meeting(
    server: str | None, interface: str, rxe: str
) -> Iterator[tuple[socket.socket, Context]]:
    with patiently(server) as line, nic_on(interface, rxe, slowdown=_SLOWDOWN) as nic:
        yield line, nic


def patiently(server: str | None) -> socket.socket:
    """Connect to a server that may start later. Raises ConnectionRefusedError if it never does."""
    for _ in range(_TRIES):
        with suppress(ConnectionRefusedError):
            return open_connection(server, PORT)
        time.sleep(0.5)
    return open_connection(server, PORT)


if __name__ == "__main__":
    main(*sys.argv[1:])
