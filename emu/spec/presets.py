"""Switches as operators configure them for RoCE, by name: `switches: {preset: nvidia}`.

A preset is a layer like any other, below the keys beside it: `{preset: nvidia,
ecn: {kmax: 800KB}}` changes one of them. A role's or a switch's preset stands in place of
that of all: half of each is nobody's switch. Sizes are bytes of real switches with
buffers of tens of megabytes.

    nvidia   Cumulus Linux and Onyx, `roce` mode lossless: priority 3 lossless, half of
             the link for each of the two, CNPs (DSCP 48) strict on 6
    sonic    what its image ships: qos_config.j2, buffers_config.j2 and the WRED profile
             AZURE_LOSSLESS. DSCPs 3 and 4 are lossless; 26, like most, is not
    cisco    NX-OS' blueprint for AI clusters: DSCP 26 lossless on queue 3, CNPs strict on 7
    dctcp    marks as DCTCP wants them, all from one depth K on: 300 KB, which is what HPCC's
             authors take for links of 100 Gbit (30 KB for each 10 Gbit)
"""

from __future__ import annotations

from emu.spec.classes import Classes
from emu.spec.quantities import SizeOrAlpha
from emu.spec.switch import Ecn, Pfc, Scheduling, SwitchSpec

_ALPHA_1 = SizeOrAlpha(alpha_1024=1024)
"""Dynamic thresholds, as they all have them; SONiC's dynamic_th 0."""

PRESETS = {
    "nvidia": SwitchSpec(
        buffer=32_000_000,
        alpha=1.0,
        classes=Classes(dscp={26: 3, 48: 6}),
        pfc=Pfc(priorities=(3,), xoff=_ALPHA_1),
        ecn=Ecn(kmin=150_000, kmax=1_500_000, pmax=1.0),
        scheduling=Scheduling(strict=(6,), weights={0: 50, 3: 50}),
    ),
    "sonic": SwitchSpec(
        buffer=32_000_000,
        alpha=8.0,
        classes=Classes(dscp={3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6}, other_dscp=1),
        pfc=Pfc(priorities=(3, 4), xoff=_ALPHA_1),
        ecn=Ecn(kmin=1_048_576, kmax=2_097_152, pmax=0.05),
        scheduling=Scheduling(strict=(), weights={0: 14, 1: 14, 2: 14, 3: 15, 4: 15, 5: 14, 6: 14}),
    ),
    "cisco": SwitchSpec(
        buffer=32_000_000,
        alpha=1.0,
        classes=Classes(dscp={26: 3, 48: 7}, other_dscp=0),
        pfc=Pfc(priorities=(3,), xoff=_ALPHA_1),
        ecn=Ecn(kmin=150_000, kmax=3_000_000, pmax=0.07),
        scheduling=Scheduling(strict=(7,), weights={0: 50, 3: 50}),
    ),
    "dctcp": SwitchSpec(ecn=Ecn(kmin=300_000, kmax=300_000, pmax=1.0)),
}
