"""A spec's congestion control -> what the C core is configured with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from emu._core import ffi, lib
from emu.spec.congestion import Cct, Dcqcn, RoceCcEcn, encoded_delay
from emu.spec.host import Nic
from emu.units import BPS_PER_MBPS, PS_PER_US

CCTI_TIMER_UNIT_PS = 1_024_000
_NAMES = {
    name: ffi.new("char[]", name.encode()) for name in ("none", "dcqcn", "dcqcn-nvidia", "cct")
}
"""As C strings, which live as long as this module."""

_CNP_PER = {"qp": lib.CNP_PER_QP, "ip-pair": lib.CNP_PER_ADDRESS, "port": lib.CNP_PER_PORT}


def set_congestion_control(config: Any, nic: Nic) -> None:
    """Fills in a `struct qp_config`."""
    config.cc = _NAMES[nic.cc]
    _set_dcqcn(config.dcqcn, nic.dcqcn)
    _set_roce_cc_ecn(config.roce_cc_ecn, nic.roce_cc_ecn)
    _set_cct(config.cct, nic.cct)
    _set_cnp(config.cnp, nic)


@lru_cache
def _table(delays: tuple[float, ...]) -> Any:
    """In the core's memory, where it stays."""
    return ffi.new("uint16_t[]", [encoded_delay(delay) or 0 for delay in delays])


def _set_cct(config: Any, given: Cct) -> None:
    config.cct = _table(given.cct)
    config.ccti_limit = len(given.cct) - 1
    config.ccti_increase = given.ccti_increase
    config.ccti_min = min(given.ccti_min, config.ccti_limit)
    config.ccti_timer_ps = given.ccti_timer * CCTI_TIMER_UNIT_PS


def _set_cnp(config: Any, nic: Nic) -> None:
    config.enabled = nic.cc != "none"
    config.keeps_marks = nic.cc == "dcqcn"
    config.per = _CNP_PER[nic.cnp.per]
    config.delay_ps = nic.cnp.delay_ps
    config.interval_ps = _cnp_interval_ps(nic)


def _cnp_interval_ps(nic: Nic) -> int:
    """InfiniBand answers every FECN with a BECN."""
    if nic.cc == "dcqcn":
        return nic.dcqcn.cnp_interval_ps
    return 0 if nic.cc == "cct" else nic.roce_cc_ecn.min_time_between_cnps * PS_PER_US


def _set_dcqcn(config: Any, dcqcn: Dcqcn) -> None:
    config.g = dcqcn.g
    config.rai_bps = dcqcn.rai_bps
    config.rhai_bps = dcqcn.rhai_bps
    config.min_rate_bps = dcqcn.min_rate_bps
    config.byte_counter_bytes = dcqcn.byte_counter
    config.fast_recovery = dcqcn.fast_recovery
    config.alpha_timer_ps = dcqcn.alpha_timer_ps
    config.increase_timer_ps = dcqcn.increase_timer_ps


def _set_roce_cc_ecn(config: Any, given: RoceCcEcn) -> None:
    config.clamp_tgt_rate = given.clamp_tgt_rate
    config.clamp_tgt_rate_after_time_inc = given.clamp_tgt_rate_after_time_inc
    config.rpg_time_reset_ps = given.rpg_time_reset * PS_PER_US
    config.rpg_byte_reset = given.rpg_byte_reset
    config.rpg_threshold = given.rpg_threshold
    config.rpg_max_rate_bps = given.rpg_max_rate * BPS_PER_MBPS
    config.rpg_ai_rate_bps = given.rpg_ai_rate * BPS_PER_MBPS
    config.rpg_hai_rate_bps = given.rpg_hai_rate * BPS_PER_MBPS
    config.rpg_min_rate_bps = given.rpg_min_rate * BPS_PER_MBPS
    config.rpg_gd = given.rpg_gd
    config.rpg_min_dec_fac = given.rpg_min_dec_fac / 100
    config.rate_to_set_on_first_cnp_bps = given.rate_to_set_on_first_cnp * BPS_PER_MBPS
    config.dce_tcp_g = given.dce_tcp_g / 1024
    config.dce_tcp_rtt_ps = given.dce_tcp_rtt * PS_PER_US
    config.rate_reduce_monitor_period_ps = given.rate_reduce_monitor_period * PS_PER_US
    config.initial_alpha_value = given.initial_alpha_value / 1024
