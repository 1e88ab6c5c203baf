"""Sets a port's IsSM bit in ibsim again after its cable was plugged in.

IsSM in a port's CapabilityMask says that a subnet manager runs there; OpenSM sets the bit once,
when it starts. On a real NIC it outlives the link. ibsim clears it when a cable is plugged in
again, so two managers that a cut had separated would never find each other.

    ours ── PortInfo? ──▶ ibsim     until the cable is plugged in and the bit cleared
    ours ── IsSM! ──────▶ ibsim ── trap 144 ──▶ master, which sweeps and asks for SMInfo

This uses the protocol between ibsim and its clients: datagrams of a magic number, the client's
number, the kind of request, a length and 64 bytes.
"""

from __future__ import annotations

import socket
import time
from struct import Struct

from topologies.graph import Host
from topologies.guids import host_guid

_CONTROL = Struct("=4I64s")
_MAGIC = 0xDEADBEEF
_GET_GUID, _GET_PORTINFO, _SET_ISSM = 6, 8, 9
_NUMBER, _GUID, _CAPABILITY_MASK = Struct("=I"), Struct("=Q"), Struct(">20xI")
_IS_SM = 0x2
_CLIENTS = 10
_SECONDS_TO_ANSWER, _SECONDS_TO_FORGET, _SECONDS_BETWEEN_POLLS = 1.0, 1.0, 0.005


def set_is_sm(socket_name: str, host: Host) -> None:
    """Sets the bit of a host whose cable was plugged in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind("")
        line.settimeout(_SECONDS_TO_ANSWER)
        line.connect(f"\0{socket_name}:ctl\0".encode())
        client = next((n for n in range(_CLIENTS) if _guid(line, n) == host_guid(host)), None)
        if client is not None:
            _wait_until_forgotten(line, client)
            _ask(line, client, _SET_ISSM, _NUMBER.pack(True))


def _guid(line: socket.socket, client: int) -> int | None:
    """Of the NIC that the client believes it has. None: there is no such client."""
    try:
        guid: int = _GUID.unpack_from(_ask(line, client, _GET_GUID))[0]
    except TimeoutError:
        return None
    return guid


def _wait_until_forgotten(line: socket.socket, client: int) -> None:
    end = time.monotonic() + _SECONDS_TO_FORGET
    while time.monotonic() < end:
        (mask,) = _CAPABILITY_MASK.unpack_from(_ask(line, client, _GET_PORTINFO))
        if not mask & _IS_SM:
            return
        time.sleep(_SECONDS_BETWEEN_POLLS)


def _ask(line: socket.socket, client: int, what: int, data: bytes = b"") -> bytes:
    """The answer's 64 bytes, and not those of a question before. Raises TimeoutError."""
    line.send(_CONTROL.pack(_MAGIC, client, what, len(data), data))
    while True:
        _, answered, to, _, answer = _CONTROL.unpack(line.recv(_CONTROL.size))
        if (answered, to) == (client, what):
            return bytes(answer)
