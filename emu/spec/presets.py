"""Switches as operators configure them for RoCE, by name: `switches: {preset: nvidia}`.

A preset is a layer below the keys beside it: `{preset: nvidia, ecn: {kmax: 800KB}}` changes one of
its values. The preset of a role or a switch replaces that of all switches; the two are not mixed.
Sizes are those of real switches with buffers of tens of megabytes. `PRESET_NOTES` describes each
preset.
"""

from __future__ import annotations

from emu.spec import references
from emu.spec.classes import Classes
from emu.spec.quantities import SizeOrAlpha
from emu.spec.switch import Ecn, Pfc, Scheduling, SwitchSpec

PRESET_NOTES = {
    "nvidia": (
        "Cumulus Linux and Onyx in `roce` mode lossless: priority 3 is lossless, lossless and "
        "other traffic have half of the link each, and CNPs (DSCP 48) go first, strictly, on "
        "priority 6.",
        references.ROCE_DSCP,
    ),
    "sonic": (
        "What SONiC's image ships, with the WRED profile AZURE_LOSSLESS. DSCPs 3 and 4 are "
        "lossless; 26, like most others, is not, so that hosts send RDMA with 3 unless they name "
        "a DSCP.",
        references.SONIC_QOS,
    ),
    "cisco": (
        "NX-OS as Cisco's blueprint for AI clusters configures it: DSCP 26 is lossless on queue "
        "3, and CNPs go first, strictly, on 7.",
        references.CISCO_BLUEPRINT,
    ),
    "dctcp": (
        "Marks as DCTCP requires: every packet from one depth K on. K is 300 KB, the value of "
        "HPCC's authors for links of 100 Gbit/s (30 KB for each 10 Gbit/s).",
        references.HPCC_NS3,
    ),
}
"""A description of each preset, and its public source."""

_ALPHA_1 = SizeOrAlpha(alpha_1024=1024)
"""The dynamic threshold of all presets; SONiC's dynamic_th 0."""

DSCPS = {"nvidia": (26, 48), "sonic": (3, 48), "cisco": (26, 48)}
"""The default DSCPs of RDMA packets and of CNPs for hosts at a switch with the preset. The preset
maps each to the priority for such packets."""

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
