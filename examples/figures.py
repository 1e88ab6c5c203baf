"""What a threshold does to an incast, as tables: emu from Python."""

import emu

for kmin in ("20KB", "100KB"):
    run = emu.run("topologies/incast.emu.yml", set={"switches.ecn.kmin": kmin}, clock="virtual")
    incast = run.flows[run.flows["traffic"] == "incast"]
    deepest = run.series("queue").max().sort_values(ascending=False)
    print(
        f"kmin {kmin}: last completion {incast['end_ns'].max() / 1e6:.3f} ms,",
        f"{run.totals['ce_marked']} packets marked,",
        f"deepest queue {deepest.index[0]}, {deepest.iloc[0] / 1000:.0f} KB",
    )

port = run.capture("leaf1:h1")
print(
    f"{len(port)} packets at leaf1:h1, the first after {float(port[0].time) * 1e6:.2f} us:",
    port[0].summary(),
)
