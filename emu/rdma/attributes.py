"""What `modify` may change of a queue pair, and at which step (ibv_modify_qp(3)).

A step takes what is listed for it and nothing else; where libibverbs demands an attribute that
is left out here, it is as the host's NIC has it in the spec.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from emu.rdma.names import QPState, QPType

_RC, _UC, _UD = QPType.RC, QPType.UC, QPType.UD
_RESET, _INIT, _RTR = QPState.RESET, QPState.INIT, QPState.RTR
_RTS, _SQD, _SQE = QPState.RTS, QPState.SQD, QPState.SQE


@dataclass(frozen=True)
class QPAttr:
    """What `modify` may change. None: as the host's NIC has it in the spec, or as it is."""

    dest_qp_num: int | None = None
    rq_psn: int | None = None
    """The PSN that the other end begins with."""
    dest_address: int | None = None
    """The other host's `Context.address`."""
    sq_psn: int | None = None
    path_mtu: int | None = None
    """Bytes of payload in a packet; no more than the port's `Context.active_mtu`."""
    timeout: int | None = None
    """4.096 us times 2 to this power; 0: never."""
    retry_cnt: int | None = None
    rnr_retry: int | None = None
    """7: for ever."""
    min_rnr_timer: int | None = None
    max_rd_atomic: int | None = None
    """READs and atomics of ours that may be outstanding; no more than the other end's
    `max_dest_rd_atomic`, which refuses those beyond (REM_INV_REQ_ERR)."""
    max_dest_rd_atomic: int | None = None
    """Of the other end's, which we answer."""
    qkey: int | None = None

    def given(self) -> dict[str, int]:
        """Those that are not None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


AS_IT_IS = QPAttr()

REMOTE = {"dest_qp_num": "qpn", "rq_psn": "psn", "dest_address": "address"}
"""Attributes that say where the other end is, and their fields in a `struct qp_remote`."""

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
"""All others, and their fields in a `struct qp_config`."""

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
"""Step -> transport -> attributes. What is absent takes none."""
