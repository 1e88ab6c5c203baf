"""Unmodified verbs programs on emulated hosts.

    program ── ibv_* ──▶ library (C, loaded by LD_PRELOAD) ══▶ NICs, a process of the lab
                                                                 nic_main → server → program

The library is `emu/verbs/library`; what it shares with the NICs is `emu/core/uverbs`. The NICs'
verbs objects are those of `emu.rdma`.
"""
