"""The names that the rest of the emulator imports for specs.

spec = load_spec(Path("topologies/incast.emu.yml"), ["slowdown=1000"])
spec.topology.build()      the graph of hosts, switches and cables
spec.switch("leaf1")       a switch with the settings of all, of its role and of itself
spec.workload()            the graph of operations
spec.variants()            the specs that `compare:` names
spec_from_json(spec.to_json()) == spec
"""

from emu.spec.checks.check import Check
from emu.spec.checks.checksums import Checksums
from emu.spec.checks.counter import Agreement, Counter
from emu.spec.checks.fairness import Fairness, Share
from emu.spec.checks.fct import FctSlowdownBounds
from emu.spec.checks.finish import Finish
from emu.spec.checks.goodput import Goodput
from emu.spec.checks.ios import Bandwidth, Iops
from emu.spec.checks.kind import Window
from emu.spec.checks.latency import LatencyBounds
from emu.spec.checks.lossless import Lossless
from emu.spec.checks.marks import Marks
from emu.spec.checks.queue import QueueDepth
from emu.spec.checks.rate import DeliveryRate
from emu.spec.classes import Classes
from emu.spec.from_code import changed, spec_from_mapping
from emu.spec.host import HostDefaults, HostSpec, Nic
from emu.spec.load import load_spec, spec_from_text
from emu.spec.scenario import Spec, spec_from_json
from emu.spec.subnet import SubnetSpec, VlArbitration
from emu.spec.switch import Credits, Ecn, Pfc, PortSpec, Scheduling, SwitchDefaults, SwitchSpec
from emu.spec.topology import (
    Dumbbell,
    FatTree,
    Graph,
    LeafSpine,
    Link,
    Links,
    ParkingLot,
    Rail,
    Ring,
)
from emu.spec.traffic.collectives import AllReduce
from emu.spec.traffic.entry import TrafficEntry
from emu.spec.traffic.patterns import AllToAll, Incast, Outcast, Pair, Permutation
from emu.spec.traffic.random_traffic import Background, HotSpot

__all__ = [
    "Agreement",
    "AllReduce",
    "AllToAll",
    "Background",
    "Bandwidth",
    "Check",
    "Checksums",
    "Classes",
    "Counter",
    "Credits",
    "DeliveryRate",
    "Dumbbell",
    "Ecn",
    "Fairness",
    "FatTree",
    "FctSlowdownBounds",
    "Finish",
    "Goodput",
    "Graph",
    "HostDefaults",
    "HostSpec",
    "HotSpot",
    "Incast",
    "Iops",
    "LatencyBounds",
    "LeafSpine",
    "Link",
    "Links",
    "Lossless",
    "Marks",
    "Nic",
    "Outcast",
    "Pair",
    "ParkingLot",
    "Permutation",
    "Pfc",
    "PortSpec",
    "QueueDepth",
    "Rail",
    "Ring",
    "Scheduling",
    "Share",
    "Spec",
    "SubnetSpec",
    "SwitchDefaults",
    "SwitchSpec",
    "TrafficEntry",
    "VlArbitration",
    "Window",
    "changed",
    "load_spec",
    "spec_from_json",
    "spec_from_mapping",
    "spec_from_text",
]
