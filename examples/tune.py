"""ECN thresholds for an incast with a victim, found by Optuna and judged on other seeds."""

import emu

tuned = emu.tune(
    "topologies/tuning/victim.emu.yml",
    ["switches.ecn.kmin", "switches.ecn.kmax"],
    minimise="victim.last_completion",
    trials=12,
    loads=[1.2],
)
print(tuned)
print(tuned.importances())
print(tuned.held_out.groupby(["load", "settings"])["victim.last_completion"].mean().round())
