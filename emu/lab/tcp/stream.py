"""One TCP flow between two hosts: a connection of their kernels, both ends of it in one process.

    connect ─▶ writable: send, send ... shut down
    accept  ─▶ readable: compare, compare ... end

What is sent is cut from one block of random bytes, which begins anew at its end, from
another place for each stream. So the receiver knows what must come, and compares it.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector

from emu.measure.recording import TCP, FlowRecord
from traffic.graph import Flow

CHUNK = 1 << 18
"""Bytes that are sent or received at a time."""

_BLOCK = 1 << 20
_TOTAL_RETRANS = struct.Struct("@100xI")  # in struct tcp_info of linux/tcp.h


class Block:
    """The bytes that streams are cut from."""

    def __init__(self, random: Random) -> None:
        once = random.randbytes(_BLOCK)
        self._bytes = once + once[:CHUNK]

    def cut(self, at: int, size: int) -> bytes:
        """`size` bytes, a chunk at most, from the place `at` on."""
        begin = at % _BLOCK
        return self._bytes[begin : begin + size]


class Stream:
    """A flow's bytes on their way. Its sockets do not block; times are emulated nanoseconds."""

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
        """All is there, or nothing more will be."""
        self._flow = flow
        self.size_bytes = size_bytes
        self._block = block
        self._cut_at = cut_at
        self._sender = sender
        self._listener = listener
        self.received = self._sent = 0
        self._end_ns: int | None = None

    def begin(self, selector: BaseSelector) -> None:
        """Asks for the connection."""
        selector.register(self._listener, EVENT_READ, self.accept)
        selector.register(self._sender, EVENT_WRITE, self.send)
        self._sender.connect_ex(self._listener.getsockname())

    def accept(self, selector: BaseSelector, now_ns: int) -> None:
        """The connection is there."""
        selector.unregister(self._listener)
        receiver, _ = self._listener.accept()
        receiver.setblocking(False)
        selector.register(receiver, EVENT_READ, lambda *told: self.receive(receiver, *told))

    def send(self, selector: BaseSelector, now_ns: int) -> None:
        """There is room for more, or the connection has failed."""
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
        """Something has come, or the connection has failed."""
        try:
            came = receiver.recv(CHUNK)
        except OSError:
            came = b""
        if not came or came != self._block.cut(self._cut_at + self.received, len(came)):
            self._give_up(selector, receiver)
            return
        self.received += len(came)
        if self.received == self.size_bytes:
            self._end_ns, self.over = now_ns, True
            selector.unregister(receiver)

    def _give_up(self, selector: BaseSelector, failed: socket.socket) -> None:
        self.over = True
        selector.unregister(failed)

    def record(self, now_ns: int) -> FlowRecord:
        """What became of it so far."""
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
        """Segments, as the sender's kernel counts them; 0 where there is no connection any more."""
        with suppress(OSError):
            info = self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANS.size)
            (segments,) = _TOTAL_RETRANS.unpack(info)
            return int(segments)
        return 0
