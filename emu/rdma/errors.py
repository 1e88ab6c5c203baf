"""Errors for refused work requests. A refused request posts nothing and changes nothing."""

from __future__ import annotations

from emu._core import lib
from emu.errors import LocalProtocolError
from emu.rdma.names import QPState, QPType
from emu.rdma.work import RecvWR, SendWR

SENDING = (QPState.RTS, QPState.SQD, QPState.SQE, QPState.ERR)
"""States in which messages are accepted, if only to flush them."""
_LENGTHS = {
    QPType.UD: "a datagram holds one MTU",
    QPType.RC: "a message has up to 2^31 bytes, an atomic 8",
    QPType.UC: "a message has up to 2^31 bytes",
}


def refuse_send(
    code: int,
    subject: str,
    state: QPState,
    qp_type: QPType,
    rooms: tuple[int, int, int],
    wr: SendWR,
) -> None:
    """Raises LocalProtocolError unless the code says that the request was posted.

    `rooms`: the most send requests, the most receive requests, and the most inline bytes.
    """
    if code == 0:
        return
    if code == lib.REFUSED_QUEUE_FULL:
        why = _full(rooms[0])
    elif code == lib.REFUSED_INLINE:
        why = (
            f"{wr.opcode.name} with bytes inline: SEND and WRITE have them, and up to "
            f"{rooms[2]}; make the queue pair with a larger max_inline_data, or take an sge"
        )
    elif code == lib.STATUS_LOC_LEN_ERR:
        why = f"{wr.sge.length} bytes: {_LENGTHS[qp_type]}"
    elif code == lib.STATUS_LOC_PROT_ERR:
        why = _not_registered(wr)
    elif state not in SENDING:
        why = f"it is in {state.name} and sends from RTS on; take it there with to_rts"
    elif (qp_type is QPType.UD) != (wr.ah is not None):
        why = "datagrams, and they alone, are sent with an ah"
    else:
        why = f"{qp_type.name} has no {wr.opcode.name}"
    raise LocalProtocolError(f"{subject}: {why}")


def refuse_receive(code: int, subject: str, room: int, wr: RecvWR) -> None:
    """Raises LocalProtocolError unless the code says that the receive was posted."""
    if code == 0:
        return
    if code == lib.REFUSED_QUEUE_FULL:
        why = _full(room)
    elif code == lib.STATUS_LOC_PROT_ERR:
        why = f"{_not_registered(wr)}, with LOCAL_WRITE"
    else:
        why = "it takes no receives in RESET, nor beside a shared queue; begin with to_init"
    raise LocalProtocolError(f"{subject}: {why}")


def _full(room: int) -> str:
    return (
        f"{room} work requests are outstanding, and it has room for no more; poll their ends first"
    )


def _not_registered(wr: SendWR | RecvWR) -> str:
    sge = wr.sge
    return (
        f"{sge.length} bytes at {sge.addr:#x} are not in the memory of key {sge.lkey:#x} in its "
        "protection domain, or the key does not permit this use; register them"
    )
