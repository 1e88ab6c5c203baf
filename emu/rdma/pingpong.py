"""The ping-pong of libibverbs' examples: an emulated NIC exchanges messages with `ibv_rc_pingpong`.

Over TCP, both ends exchange how to connect, the client first. Each sends one line of 52 bytes that
ends with NUL. The client then confirms that it is connected:

    LID  QPN    PSN    GID in hex
    0000:000011:a1b2c3:00000000000000000000ffff0a000001

Then the client SENDs, the server answers with a SEND, and so on. The examples use one buffer for
sending and receiving, so they send back what they received. An end that sends new bytes each time
can therefore check that every byte went both ways unchanged.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv6Address
from random import Random
from typing import Self

import numpy as np

from emu.errors import RemoteProtocolError, UsageError
from emu.rdma.attributes import AS_IT_IS, QPAttr
from emu.rdma.context import Context
from emu.rdma.names import AccessFlag, QPType
from emu.rdma.qp import QPEnd
from emu.rdma.work import RecvWR, SendWR

PORT = 18515
_DONE = b"done\0"
_LINE_BYTES = len("0000:000000:000000:") + 32 + 1
_RECEIVES = 32
_MAPPED = IPv6Address("::ffff:0.0.0.0")


@dataclass(frozen=True)
class PingPongConfig:
    """Settings that both ends must share, and the timeout for acknowledgements of this end."""

    qp_type: QPType
    size: int
    """Bytes of a message."""
    iterations: int
    mtu: int
    timeout: int
    """4.096 us times 2 to this power, of emulated time."""


@dataclass(frozen=True)
class End(QPEnd):
    """The number, PSN and address of one end, which the other end needs to connect."""

    def line(self) -> bytes:
        gid = int(_MAPPED) | self.address
        return f"0000:{self.qp_num:06x}:{self.psn:06x}:{gid:032x}".encode() + b"\0"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """The end in a received line. Raises RemoteProtocolError for another text, or an address
        that is not IPv4."""
        try:
            _lid, qpn, psn, gid = (int(word, 16) for word in line.rstrip(b"\0").split(b":"))
            address = IPv6Address(gid).ipv4_mapped
        except ValueError:
            raise RemoteProtocolError(f"{line!r} says nothing about a queue pair") from None
        if address is None:
            raise RemoteProtocolError(
                f"the other end's GID {IPv6Address(gid)} holds no IPv4 address; make it use "
                "a GID that does (ibv_devinfo -v lists them; -g 1 is usual)"
            )
        return cls(qpn, psn, int(address))


def open_connection(server: str | None, port: int) -> socket.socket:
    """A TCP connection to the server; with None, from the first client that connects."""
    if server is not None:
        return socket.create_connection((server, port))
    with socket.create_server(("", port)) as listener:
        return listener.accept()[0]


def exchange_and_connect(line: socket.socket, ping_pong: PingPong, *, is_client: bool) -> None:
    """Exchanges how to connect, and connects. A server is ready when it answers."""
    end = ping_pong.qp.end
    own = End(end.qp_num, end.psn, end.address).line()
    if is_client:
        line.sendall(own)
        ping_pong.connect(End.parse(_read(line, _LINE_BYTES)))
        line.sendall(_DONE)
    else:
        ping_pong.connect(End.parse(_read(line, _LINE_BYTES)))
        line.sendall(own)


def _read(line: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = line.recv(size - len(received))
        if not piece:
            raise RemoteProtocolError(f"the other end hung up after {received!r}")
        received += piece
    return received


class PingPong:
    """This end of a ping-pong."""

    def __init__(self, context: Context, config: PingPongConfig) -> None:
        """Raises UsageError when the interface cannot carry packets of this MTU."""
        if config.mtu > context.active_mtu:
            raise UsageError(
                f"the interface has room for packets of {context.active_mtu} bytes, and these are "
                f"of {config.mtu}; take a smaller --mtu, or make the interface's larger"
            )
        self._config = config
        pd = context.alloc_pd()
        self._out, self._in = (np.zeros(config.size, np.uint8) for _ in range(2))
        self._sending = pd.reg_mr(self._out, AccessFlag(0))
        self._receiving = pd.reg_mr(self._in, AccessFlag.LOCAL_WRITE)
        self._sent, self._came = (context.create_cq(2 * _RECEIVES) for _ in range(2))
        self.qp = pd.create_qp(config.qp_type, self._sent, self._came)

    def connect(self, other: QPEnd) -> None:
        """Takes the queue pair to RTS. Receives are posted before packets can arrive."""
        config = self._config
        self.qp.to_init()
        for _ in range(min(_RECEIVES, config.iterations)):
            self._post_receive()
        self.qp.to_rtr(
            QPAttr(
                dest_qp_num=other.qp_num,
                rq_psn=other.psn,
                dest_address=other.address,
                path_mtu=config.mtu,
            )
        )
        retries = QPAttr(timeout=config.timeout, retry_cnt=7, rnr_retry=7)
        self.qp.to_rts(retries if config.qp_type is QPType.RC else AS_IT_IS)

    async def run(self, random: Random | None, *, is_client: bool) -> int:
        """Exchanges all messages, and returns how many went to the other end and came back.

        Each message has new `random` bytes. With None, this end sends back what it received, as
        the examples do, and the other end compares. Raises RemoteProtocolError when a byte has
        changed or the queue pair fails, and TimeoutError.
        """
        returned = 0
        if is_client:
            await self._send(random)
        for turn in range(self._config.iterations):
            await self._receive()
            if random is not None and (is_client or turn > 0):
                self._compare(turn)
                returned += 1
            if turn + 1 < self._config.iterations or not is_client:
                await self._send(random)
        return returned

    async def _send(self, random: Random | None) -> None:
        if random is None:
            self._out[:] = self._in
        else:
            self._out[:] = np.frombuffer(random.randbytes(self._config.size), np.uint8)
        self.qp.post_send(SendWR(sge=self._sending.sge()))
        (await self._sent.wait()).succeeded()

    async def _receive(self) -> None:
        came = (await self._came.wait()).succeeded()
        if came.byte_len != self._config.size:
            raise RemoteProtocolError(
                f"{came.byte_len} bytes came where {self._config.size} should; give both ends the "
                "same --size"
            )
        self._post_receive()

    def _post_receive(self) -> None:
        self.qp.post_recv(RecvWR(self._receiving.sge()))

    def _compare(self, turn: int) -> None:
        wrong = np.flatnonzero(self._in != self._out)
        if wrong.size:
            raise RemoteProtocolError(
                f"turn {turn}: {wrong.size} of {self._config.size} bytes came back changed, the "
                f"first at {wrong[0]}"
            )
