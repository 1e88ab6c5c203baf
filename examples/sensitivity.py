"""What a changed setting, a mistake or a failed link costs on two fabrics, as tables."""

import emu

measured = emu.sensitivity(
    "topologies/tuning/victim.emu.yml", fabrics=["roce", "ib"], out="out/victim"
)
print(measured)
costs = measured.costs
shown = costs[costs["differs"]].sort_values("share", ascending=False)
print(shown.groupby("fabric").head(5)[["fabric", "change", "figure", "share"]])
print(measured.counts.query("differs and count == 'paused_ns'")[["change", "before", "after"]])
