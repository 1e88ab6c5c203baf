"""The General Services Interfaces of NICs: queue pair 1 of each, for management datagrams (IBTA vol
1, 13.5.3).

All of them complete into one queue, so that one look tells whether anything has come. Queue pairs
0, for the subnet's own management, do not exist here: a subnet manager reaches no NIC by packets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from emu._core import ffi, lib
from emu.bindings.nics import have
from emu.rdma.context import Context
from emu.rdma.names import QPType

_RECEIVES, _SENDS = 128, 128
"""Outstanding at a time."""
_GRH_BYTES = 40
_IP_SOURCE = 32
"""In the room of the GRH, which an IPv4 header ends."""
_SLOT_BYTES = _GRH_BYTES + lib.MAD_BYTES
_NO_PD = 0
"""Programs' protection domains count from 1."""


class _Interface:
    """Queue pair 1 of a NIC."""

    def __init__(self, context: Context, cq: Any, number: int, owner: Context) -> None:
        """`owner`: the context that frees the completion queue, and the queue pair before it."""
        self._context = context
        self._first = number * _RECEIVES
        config = context.qp_config(QPType.UD, _NO_PD, None)
        self._core = have(lib.nic_add_gsi(context.core, config), "queue pair 1")
        work = have(
            lib.verbs_qp_new(self._core, cq, cq, _SENDS, _RECEIVES, lib.MAD_BYTES), "queue pair 1"
        )
        self._work = owner.keep(work, lib.verbs_qp_free)
        self._memory = np.zeros((_RECEIVES, _SLOT_BYTES), np.uint8)
        self._va = context.next_address(self._memory.nbytes)
        self._key = lib.nic_add_region(
            context.core,
            _NO_PD,
            self._va,
            self._memory.nbytes,
            lib.ACCESS_LOCAL_WRITE,
            ffi.from_buffer("uint8_t[]", self._memory),
        )
        self._waiting: deque[Any] = deque()
        self._free = _SENDS
        lib.qp_connect(self._core, ffi.new("struct qp_remote *", {"address": context.address}))
        for slot in range(_RECEIVES):
            self._post(slot)

    def send(self, address: int, sl: int, packet: bytes) -> None:
        """Sends a datagram to queue pair 1 of the NIC that has this address."""
        bytes_ = ffi.new("uint8_t[]", packet)
        request = {
            "verb": lib.VERB_SEND,
            "inlined": bytes_,
            "inlined_bytes": len(packet),
            "is_datagram": True,
            "remote_address": address,
            "remote_qpn": lib.GSI_QPN,
            "remote_qkey": lib.GSI_QKEY,
            "sl": sl,
            "wr_id": self._first,
        }
        self._waiting.append((ffi.new("struct send_request *", request), bytes_))
        self._send_waiting()

    def sent(self) -> None:
        """A datagram has left."""
        self._free += 1
        self._send_waiting()

    def take(self, completion: Any) -> tuple[int, bytes]:
        """The address of the sender, and the datagram. Its room is used again."""
        slot = completion.wr_id - self._first
        packet = self._memory[slot].tobytes()[: completion.byte_len]
        source = completion.slid
        if self._context.is_ethernet:
            source = int.from_bytes(packet[_IP_SOURCE : _IP_SOURCE + 4])
        self._post(slot)
        return source, packet[_GRH_BYTES:]

    def _send_waiting(self) -> None:
        while self._waiting and self._free:
            request, _ = self._waiting.popleft()
            self._free -= 1
            lib.verbs_post_send(self._work, request, self._context.clock.now_ps)

    def _post(self, slot: int) -> None:
        place = self._va + slot * _SLOT_BYTES
        element = ffi.new("struct sge[]", [(place, _SLOT_BYTES, self._key)])
        lib.verbs_post_recv(self._work, self._first + slot, element, 1, self._context.clock.now_ps)


class GeneralServices:
    """Those of all NICs, by their order."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        """The NICs must be connected to the fabric already."""
        first = contexts[0]
        room = len(contexts) * (_RECEIVES + _SENDS)
        cq = have(lib.cq_new(first.clock.core, room, first.clock.event), "a completion queue")
        self._cq = first.keep(cq, lib.cq_free)
        self._completion = ffi.new("struct work_completion *")
        self._interfaces = [
            _Interface(context, self._cq, number, first) for number, context in enumerate(contexts)
        ]

    def send(self, number: int, address: int, sl: int, packet: bytes) -> None:
        """Sends a datagram from NIC `number` to the one that has this address."""
        self._interfaces[number].send(address, sl, packet)

    def received(self) -> Iterator[tuple[int, int, bytes]]:
        """What has come so far: the number of the NIC, the address of the sender, the datagram."""
        while lib.cq_poll(self._cq, self._completion):
            number = self._completion.wr_id // _RECEIVES
            if not self._completion.is_receive:
                self._interfaces[number].sent()
                continue
            is_whole = self._completion.status == lib.STATUS_SUCCESS
            source, packet = self._interfaces[number].take(self._completion)
            if is_whole:
                yield number, source, packet
