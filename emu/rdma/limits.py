"""Allowed values for the numbers and enumerations of calls. Errors name the refused argument."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

import numpy as np

from emu.errors import LocalProtocolError
from emu.rdma.names import AccessFlag

_U24, _U32, _U64 = range(1 << 24), range(1 << 32), range(1 << 64)
_MAX_CQE, _MAX_WR, _MAX_INLINE = 1 << 22, 1 << 15, 1 << 10

LIMITS: Mapping[str, Collection[int]] = {
    "access": range(sum(AccessFlag) + 1),
    "ah.address": _U32,
    "compare_add": _U64,
    "dscp": range(64),
    "cqe": range(1, _MAX_CQE + 1),
    "dest_address": _U32,
    "dest_qp_num": _U24,
    "imm_data": _U32,
    "invalidate_rkey": _U32,
    "iova": _U64,
    "max_inline_data": range(_MAX_INLINE + 1),
    "max_recv_wr": range(_MAX_WR + 1),
    "max_send_wr": range(_MAX_WR + 1),
    "max_wr": range(1, _MAX_WR + 1),
    "min_rnr_timer": range(32),
    "pkey": range(1, 1 << 16),
    "qp_access_flags": range(sum(AccessFlag) + 1),
    "sl": range(16),
    "path_mtu": (256, 512, 1024, 2048, 4096),
    "qkey": _U32,
    "remote_addr": _U64,
    "remote_qkey": _U32,
    "remote_qpn": _U24,
    "retry_cnt": range(8),
    "rkey": _U32,
    "rnr_retry": range(8),
    "rq_psn": _U24,
    "sge.addr": _U64,
    "sge.length": _U32,
    "sge.lkey": _U32,
    "sq_psn": _U24,
    "swap": _U64,
    "timeout": range(32),
    "wr_id": _U64,
}
"""Limits by name. Widths are those of libibverbs' structures and of packet headers."""


def refuse_numbers(
    subject: str, values: Mapping[str, Any], limits: Mapping[str, Collection[int]] = LIMITS
) -> None:
    """Raises LocalProtocolError for the first number that is not within its limits."""
    for name, value in values.items():
        allowed = limits[name]
        if not isinstance(value, int | np.integer) or int(value) not in allowed:
            raise LocalProtocolError(f"{subject}: {name}={value!r} is not {_in_words(allowed)}")


def _in_words(allowed: Collection[int]) -> str:
    if isinstance(allowed, range):
        return f"a number from {allowed[0]} to {allowed[-1]}"
    return f"one of {', '.join(map(str, allowed))}"


def refuse_non_member(subject: str, name: str, value: object, kind: type[Enum]) -> None:
    """Raises LocalProtocolError unless the value is a member of the enumeration."""
    if not isinstance(value, kind):
        members = ", ".join(member.name for member in kind)
        raise LocalProtocolError(f"{subject}: {name}={value!r} is no {kind.__name__}: {members}")
