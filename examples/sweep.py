"""Thresholds of an incast, with five seeds each: emu.sweep from Python."""

import emu

swept = emu.sweep(
    "topologies/incast.emu.yml",
    vary={"switches.ecn.kmin": ["20KB", "100KB"], "switches.ecn.kmax": "200KB..800KB/2"},
    seeds=5,
)
print(swept)
mean = swept.mean(by="switches.ecn.kmax_bytes")
print(mean.filter(like="last_completion_ns").filter(regex="^last").round())
print(swept.runs.nlargest(3, "pause_frames")[["switches.ecn.kmin_bytes", "seed", "pause_frames"]])
