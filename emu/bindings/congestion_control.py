"""Translates the congestion control of a spec into the configuration of the C core."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import text
from emu.bindings.parameters import CoreParameters, check
from emu.bindings.registry import names, with_parameters
from emu.spec.congestion_control import Control
from emu.spec.host import Nic

_CNP_PER = {"qp": lib.CNP_PER_QP, "ip-pair": lib.CNP_PER_ADDRESS, "port": lib.CNP_PER_PORT}
_BECN = {"none": lib.BECN_NONE, "cnp": lib.BECN_IN_CNP, "ack": lib.BECN_IN_ACK}


def set_congestion_control(
    config: Any, nic: Nic, peer: Nic, priority: int, path_packets: Callable[[], int]
) -> None:
    """Fills in a `struct qp_config`: how its NIC sends, and how it answers packets from `peer`.

    `path_packets` returns how many packets the path holds, for controls that depend on it.
    """
    own, answered = (cc if nic.control(cc).is_on(priority) else "none" for cc in (nic.cc, peer.cc))
    control = nic.control(own)
    if control.depends_on_path:
        control = control.on_path(path_packets())
    config.cc = _core_config(own, control).struct
    if control.needs_every_ack:
        config.ack_every = 1
    becn = nic.control(answered).becn
    config.cnp.becn = _BECN[becn.by]
    config.cnp.keeps_marks = becn.keeps_marks
    config.cnp.interval_ps = becn.interval_ps
    config.cnp.per = _CNP_PER[nic.cnp.per]
    config.cnp.delay_ps = nic.cnp.delay_ps


def core_controls() -> dict[str, frozenset[str]]:
    """The core's congestion controls, and the names of the parameters of each."""
    return with_parameters(lib.cc_name, lib.cc_parameter)


def core_recoveries() -> frozenset[str]:
    """The core's loss recoveries."""
    return frozenset(names(lib.recovery_name))


class _CoreConfig:
    """A `struct cc_config` and the memory that it points to."""

    def __init__(self, cc: str, control: Control) -> None:
        given = control.parameters()
        check("congestion control", "emu/core/nic/cc", cc, given, core_controls())
        self._parameters = CoreParameters(given)
        self._table = ffi.new("uint16_t[]", control.table)
        self._config = ffi.new("struct cc_config *")
        self._config.algorithm = text(cc)
        self._config.parameters = self._parameters.array
        self._config.parameter_count = len(given)
        self._config.table = self._table
        self._config.table_entries = len(control.table)

    @property
    def struct(self) -> Any:
        return self._config[0]


@cache
def _core_config(cc: str, control: Control) -> _CoreConfig:
    """One configuration for all queue pairs. The cache keeps it alive, as C points to its table."""
    return _CoreConfig(cc, control)
