"""The attributes of a queue pair that `modify` may change at each transition (ibv_modify_qp(3)).

A transition takes only the attributes listed for it. Where libibverbs demands an attribute that
the program leaves out, the value of the host's NIC in the spec applies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from emu.rdma.names import QPState, QPType

_RC, _UC, _UD = QPType.RC, QPType.UC, QPType.UD
_RESET, _INIT, _RTR = QPState.RESET, QPState.INIT, QPState.RTR
_RTS, _SQD, _SQE = QPState.RTS, QPState.SQD, QPState.SQE


@dataclass(frozen=True)
class QPAttr:
    """Attributes for `modify`. None keeps the present value, or the value of the host's NIC in the
    spec."""

    dest_qp_num: int | None = None
    rq_psn: int | None = None
    """The first PSN of the other end."""
    dest_address: int | None = None
    """The other host's `Context.address`."""
    sq_psn: int | None = None
    path_mtu: int | None = None
    """The most payload bytes in a packet; at most the port's `Context.active_mtu`."""
    timeout: int | None = None
    """The ACK timeout is 4.096 us times 2 to this power; 0 turns it off."""
    retry_cnt: int | None = None
    rnr_retry: int | None = None
    """The number of retries after an RNR NAK; 7 means no limit."""
    min_rnr_timer: int | None = None
    max_rd_atomic: int | None = None
    """The most READs and atomics that this queue pair may have outstanding. The other end refuses
    more than its `max_dest_rd_atomic` (REM_INV_REQ_ERR)."""
    max_dest_rd_atomic: int | None = None
    """The most READs and atomics of the other end that this queue pair accepts."""
    qkey: int | None = None

    def given(self) -> dict[str, int]:
        """The attributes that are not None, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


AS_IT_IS = QPAttr()

REMOTE = {"dest_qp_num": "qpn", "rq_psn": "psn", "dest_address": "address"}
"""Attributes of the remote end, and their fields in a `struct qp_remote`."""

SETTINGS = {
    "sq_psn": "psn",
    "path_mtu": "mtu",
    "timeout": "timeout",
    "retry_cnt": "retry_count",
    "rnr_retry": "rnr_retry",
    "min_rnr_timer": "min_rnr_timer",
    "max_rd_atomic": "max_rd_atomic",
    "max_dest_rd_atomic": "max_dest_rd_atomic",
    "qkey": "qkey",
}
"""All other attributes, and their fields in a `struct qp_config`."""

_RETRYING = {"timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "min_rnr_timer"}

TAKEN: dict[tuple[QPState, QPState], dict[QPType, set[str]]] = {
    (_RESET, _INIT): {_UD: {"qkey"}},
    (_INIT, _INIT): {_UD: {"qkey"}},
    (_INIT, _RTR): {
        _RC: {*REMOTE, "path_mtu", "max_dest_rd_atomic", "min_rnr_timer"},
        _UC: {*REMOTE, "path_mtu"},
        _UD: {"qkey"},
    },
    (_RTR, _RTS): {_RC: {"sq_psn", *_RETRYING}, _UC: {"sq_psn"}, _UD: {"sq_psn", "qkey"}},
    (_RTS, _RTS): {_RC: {"min_rnr_timer"}, _UD: {"qkey"}},
    (_SQD, _SQD): {_RC: {*_RETRYING, "max_dest_rd_atomic"}, _UD: {"qkey"}},
    (_SQD, _RTS): {_RC: {"min_rnr_timer"}, _UD: {"qkey"}},
    (_SQE, _RTS): {_UD: {"qkey"}},
}
"""Transition -> transport -> attributes. A transition that is absent takes none."""
