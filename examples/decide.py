"""Which fabric suits a cluster of 64 GPUs, and what another workload changes."""

import emu

CLUSTER = "topologies/cluster.emu.yml"
WRITERS = "leaf1[1], leaf1[9], leaf2[1], leaf2[9], leaf3[1], leaf3[9]"
ALONE = {
    "name": "checkpoints",
    "pattern": "incast",
    "from": WRITERS,
    "to": "leaf4[1]",
    "size": "1MB",
}

for name, changes in {"cluster": {}, "checkpoints": {"traffic": [ALONE]}}.items():
    decision = emu.decide(
        CLUSTER,
        ["ib", "roce-lossless"],
        prices="examples/prices.yml",
        changes="none",
        grow=False,
        set=changes,
        out=f"out/{name}",
    )
    print(decision)
    print(decision.fabrics[["value", "behind", "cost"]])
