"""The attributes of a queue pair that `modify` may change at each transition (ibv_modify_qp(3)).

A transition takes only the attributes listed for it. Where libibverbs demands an attribute that
the program leaves out, the value of the host's NIC in the spec applies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from emu.rdma.names import AccessFlag, QPState, QPType

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
    qp_access_flags: AccessFlag | None = None
    """What other hosts may do by this queue pair, if regions allow it, too. By default all."""
    sl: int | None = None
    """The service level, on InfiniBand; by default that of the path record, or of the NIC."""
    dscp: int | None = None
    """The DSCP of sent data, on Ethernet."""
    pkey: int | None = None
    """The P_Key, on InfiniBand; by default that of the default partition."""

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
    "sl": "sl",
    "dscp": "dscp",
    "pkey": "pkey",
}
"""All other attributes, and their fields in a `struct qp_config`."""

_RETRYING = {"timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "min_rnr_timer"}

_ACCESS = "qp_access_flags"
_FIRST = {_RC: {"pkey", _ACCESS}, _UC: {"pkey", _ACCESS}, _UD: {"pkey", "qkey"}}
_CONNECTION = {*REMOTE, "path_mtu", "sl", "dscp", "pkey", _ACCESS}

TAKEN: dict[tuple[QPState, QPState], dict[QPType, set[str]]] = {
    (_RESET, _INIT): _FIRST,
    (_INIT, _INIT): _FIRST,
    (_INIT, _RTR): {
        _RC: {*_CONNECTION, "max_dest_rd_atomic", "min_rnr_timer"},
        _UC: _CONNECTION,
        _UD: {"pkey", "qkey"},
    },
    (_RTR, _RTS): {
        _RC: {"sq_psn", *_RETRYING, _ACCESS},
        _UC: {"sq_psn", _ACCESS},
        _UD: {"sq_psn", "qkey"},
    },
    (_RTS, _RTS): {_RC: {"min_rnr_timer", _ACCESS}, _UC: {_ACCESS}, _UD: {"qkey"}},
    (_SQD, _SQD): {
        _RC: {*_RETRYING, "max_dest_rd_atomic", _ACCESS},
        _UC: {_ACCESS},
        _UD: {"qkey"},
    },
    (_SQD, _RTS): {_RC: {"min_rnr_timer", _ACCESS}, _UC: {_ACCESS}, _UD: {"qkey"}},
    (_SQE, _RTS): {_UC: {_ACCESS}, _UD: {"qkey"}},
}
"""Transition -> transport -> attributes. A transition that is absent takes none."""
