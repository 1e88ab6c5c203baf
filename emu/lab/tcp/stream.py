"""One TCP flow between two hosts: a connection of their kernels, with both ends in this process.

    connect ─▶ writable: send, send ... shut down
    accept  ─▶ readable: compare, compare ... end

The data is cut from one cyclic block of random bytes, from a different offset for each stream. So
the receiver knows the expected bytes and compares them.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector

from emu.measure.records import TCP, FlowRecord
from traffic.graph import Flow

CHUNK = 1 << 18
"""Bytes that are sent or received at a time."""

_BLOCK = 1 << 20
_TOTAL_RETRANS = struct.Struct("@100xI")  # in struct tcp_info of linux/tcp.h


class Block:
    """The cyclic block of bytes that streams are cut from."""

    def __init__(self, random: Random) -> None:
        once = random.randbytes(_BLOCK)
        self._bytes = once + once[:CHUNK]

    def cut(self, at: int, size: int) -> bytes:
        """`size` bytes from offset `at` on; at most `CHUNK` bytes."""
        begin = at % _BLOCK
        return self._bytes[begin : begin + size]


class Stream:
    """The transfer of a flow's bytes. Sockets do not block; times are emulated nanoseconds."""

    def __init__(
        self,
        flow: Flow,
        size_bytes: int,
        start_ns: int,
        block: Block,
        cut_at: int,
        sender: socket.socket,
        listener: socket.socket,
    ) -> None:
        self.start_ns = start_ns
        self.over = False
        """Whether all bytes have arrived or the connection has failed."""
        self._flow = flow
        self.size_bytes = size_bytes
        self._block = block
        self._cut_at = cut_at
        self._sender = sender
        self._listener = listener
        self.received = self._sent = 0
        self._end_ns: int | None = None

    def begin(self, selector: BaseSelector) -> None:
        """Starts to connect."""
        selector.register(self._listener, EVENT_READ, self.accept)
        selector.register(self._sender, EVENT_WRITE, self.send)
        self._sender.connect_ex(self._listener.getsockname())

    def accept(self, selector: BaseSelector, now_ns: int) -> None:
        """Accepts the connection."""
        selector.unregister(self._listener)
        receiver, _ = self._listener.accept()
        receiver.setblocking(False)
        selector.register(receiver, EVENT_READ, lambda *event: self.receive(receiver, *event))

    def send(self, selector: BaseSelector, now_ns: int) -> None:
        """Sends a chunk, when the socket has room or the connection has failed."""
        left = self.size_bytes - self._sent
        chunk = self._block.cut(self._cut_at + self._sent, min(left, CHUNK))
        try:
            self._sent += self._sender.send(chunk)
        except BlockingIOError:
            return
        except OSError:
            self._give_up(selector, self._sender)
            return
        if self._sent == self.size_bytes:
            selector.unregister(self._sender)

    def receive(self, receiver: socket.socket, selector: BaseSelector, now_ns: int) -> None:
        """Receives a chunk and compares it, when one has arrived or the connection has failed."""
        try:
            chunk = receiver.recv(CHUNK)
        except OSError:
            chunk = b""
        if not chunk or chunk != self._block.cut(self._cut_at + self.received, len(chunk)):
            self._give_up(selector, receiver)
            return
        self.received += len(chunk)
        if self.received == self.size_bytes:
            self._end_ns, self.over = now_ns, True
            selector.unregister(receiver)

    def _give_up(self, selector: BaseSelector, failed: socket.socket) -> None:
        self.over = True
        selector.unregister(failed)

    def record(self, now_ns: int) -> FlowRecord:
        """The flow's record up to now."""
        return FlowRecord(
            name=self._flow.name,
            traffic=self._flow.traffic,
            src=self._flow.src,
            dst=self._flow.dst,
            op=TCP,
            bytes=self.size_bytes,
            start_ns=self.start_ns,
            end_ns=self._end_ns,
            retransmitted_packets=self._retransmitted(),
            completed=self._end_ns is not None,
            delivered_bytes=self.received,
            observed_until_ns=now_ns if self._end_ns is None else self._end_ns,
        )

    def _retransmitted(self) -> int:
        """Retransmitted segments, from the sender's kernel; 0 if the connection is closed."""
        with suppress(OSError):
            info = self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANS.size)
            (segments,) = _TOTAL_RETRANS.unpack(info)
            return int(segments)
        return 0
