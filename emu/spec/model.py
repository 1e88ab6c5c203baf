"""The spec as the rest of the emulator sees it: everything to import, in one place.

spec = load_spec(Path("topologies/incast.emu.yml"), ["slowdown=1000"])
spec.topology.build()      the graph of hosts, switches and cables
spec.switch("leaf1")       a switch as it is when all, its role and itself have spoken
spec.workload()            the graph of operations
spec.variants()            the specs that `compare:` names
spec_from_json(spec.to_json()) == spec
"""

from emu.spec.check import Check, Finish, Goodput, Lossless
from emu.spec.congestion import Dcqcn, RoceCcEcn
from emu.spec.host import HostDefaults, HostSpec, Nic, priority_of_dscp
from emu.spec.load import load_spec, spec_from_text
from emu.spec.scenario import Spec, spec_from_json
from emu.spec.switch import Credits, Ecn, Pfc, Scheduling, SwitchDefaults, SwitchSpec
from emu.spec.topology import Dumbbell, FatTree, Graph, LeafSpine, Link, Links, Ring
from emu.spec.workload import AllReduce, AllToAll, Incast, Pair, Permutation, TrafficEntry

__all__ = [
    "AllReduce",
    "AllToAll",
    "Check",
    "Credits",
    "Dcqcn",
    "Dumbbell",
    "Ecn",
    "FatTree",
    "Finish",
    "Goodput",
    "Graph",
    "HostDefaults",
    "HostSpec",
    "Incast",
    "LeafSpine",
    "Link",
    "Links",
    "Lossless",
    "Nic",
    "Pair",
    "Permutation",
    "Pfc",
    "Ring",
    "RoceCcEcn",
    "Scheduling",
    "Spec",
    "SwitchDefaults",
    "SwitchSpec",
    "TrafficEntry",
    "load_spec",
    "priority_of_dscp",
    "spec_from_json",
    "spec_from_text",
]
