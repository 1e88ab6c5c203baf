"""Specs that show one pathology each, and the facts of their runs."""

from __future__ import annotations

from pathlib import Path

from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text
from emu.subnet.sm_sweeps import manage

ONE_LEAF = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 5}
hosts: {nic: {mtu: 1024, cc: CC}}
traffic: [{name: incast, pattern: incast, from: "all[1:]", to: h1, size: 2MB}]
time_limit: 2ms
"""
TWO_LEAVES = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 4}
hosts: {nic: {mtu: 1024}}
time_limit: 2ms
"""
OTHERS = "{name: others, pattern: pair, from: h6-h7, to: h2-h3, size: 20MB}"
SICK = {
    "deadlock": """
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
hosts: {nic: {timeout: 8}}
switches: {pfc: {xoff: 96KB}}
traffic: [{name: round, pattern: pair, from: h1-h5, to: [h3, h4, h5, h1, h2], size: 2MB}]
time_limit: 20ms
""",
    "pause storm": TWO_LEAVES
    + f"""
switches: {{pfc: on}}
traffic: [{{name: to-h1, pattern: pair, from: h5, to: h1, size: 20MB}}, {OTHERS}]
faults: [{{at: 100us, pause-storm: {{host: h1, priority: 3}}}}]
""",
    "slow receiver": TWO_LEAVES
    + f"""
switches: {{pfc: on}}
traffic: [{{name: to-h1, pattern: pair, from: h5, to: h1, size: 20MB}}, {OTHERS}]
faults: [{{slow-receiver: {{host: h1, rate: 10Gbit}}}}]
""",
    "go-back-0 livelock": """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}
hosts: {nic: {recovery: go-back-0}}
traffic: [{name: bulk, pattern: pair, from: h1, to: h2, size: 4MB}]
faults: [{loss: {cable: "leaf1:h1", direction: in, every: 256}}]
time_limit: 2ms
""",
    "reordering taken for loss": """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
switches: {pfc: on, routing: {kind: spray}}
traffic: [{name: load, pattern: background, among: all, sizes: hadoop, rate: 60Gbit, count: 40}]
time_limit: 4ms
""",
    "priority map differs at a hop": TWO_LEAVES
    + """
switches: {pfc: on, classes: {dscp: {26: 3}}, nodes: {spine1: {classes: {dscp: {26: 0}}}}}
traffic: [{name: flow, pattern: pair, from: h1, to: h5, size: 1MB}]
""",
    "priority mismatch between NIC and switch": TWO_LEAVES
    + """
switches: {pfc: on, buffer: 4MB, classes: {trust: pcp}}
traffic: [{name: flow, pattern: pair, from: h1, to: h5, size: 1MB}]
""",
    "headroom too small": ONE_LEAF.replace("CC", "none") + "switches: {pfc: {headroom: 1KB}}\n",
    "loss": ONE_LEAF.replace("CC", "none"),
    "premature retransmission timeout": ONE_LEAF.replace("CC", "none").replace(
        "mtu: 1024", "mtu: 1024, timeout: 1"
    )
    + "switches: {pfc: on}\n",
    "Kmin above XOFF": ONE_LEAF.replace("CC", "dcqcn")
    + "switches: {pfc: {xoff: 96KB}, ecn: {kmin: 900KB, kmax: 1MB}}\n",
    "unanswered ECN marks": ONE_LEAF.replace("CC", "none")
    + "switches: {pfc: on, ecn: {kmin: 20KB, kmax: 80KB}}\n",
    "ignored CNPs": ONE_LEAF.replace("CC", "dcqcn")
    + """
switches: {pfc: on, ecn: {kmin: 20KB, kmax: 80KB}}
faults: [{ignored-cnps: {host: h2}}]
""",
    "slow rate recovery": """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: 8
  links: {host: {rate: 400Gbit, length: 5m}}
hosts: {nic: {cc: dcqcn}}
switches: {pfc: on, ecn: on, buffer: 8MB}
traffic:
  - {name: burst, pattern: incast, from: h3-h8, to: h1, size: 1MB}
  - {name: held, pattern: pair, from: h2, to: h1, size: 16MB}
time_limit: 20ms
""",
    "victim of head-of-line blocking": TWO_LEAVES
    + """
switches: {pfc: on}
traffic:
  - {name: incast, pattern: incast, from: [h3, h4, h6, h7, h8], to: h1, size: 20MB}
  - {name: victim, pattern: pair, from: h5, to: h2, size: 20MB}
""",
    "victims of congestion spreading": """
fabric: ib
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 4}
traffic:
  - {name: incast, pattern: incast, from: [h3, h4, h6, h7, h8], to: h1, op: write, size: 20MB}
  - {name: victim, pattern: pair, from: h5, to: h2, op: write, size: 20MB}
time_limit: 2ms
""",
    "unfair shares": TWO_LEAVES
    + """
switches: {pfc: on}
traffic: [{name: greedy, pattern: incast, from: [h2, h5, h6, h7, h8], to: h1, size: 20MB}]
""",
}


def facts_of(text: str, folder: Path, settings: tuple[str, ...] = ()) -> RunFacts:
    """Runs the spec on the virtual clock; on InfiniBand with OpenSM's routes."""
    spec = spec_from_text(text.encode(), source="sick.emu.yml", settings=settings)
    topology = spec.topology.build()
    subnet = manage(spec, topology, folder) if spec.fabric == "ib" else None
    recording = VirtualRunner(subnet).run(spec, out=folder)
    return RunFacts(spec.name, recording, spec, topology)
