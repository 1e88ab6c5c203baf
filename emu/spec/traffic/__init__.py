"""The `traffic:` section: the workload, as patterns over hosts."""

from typing import Annotated

from pydantic import Field

from emu.spec.traffic.collectives import (
    AllGather,
    AllReduce,
    AllToAllPieces,
    Broadcast,
    ReduceScatter,
)
from emu.spec.traffic.experts import Experts
from emu.spec.traffic.inference import Inference
from emu.spec.traffic.patterns import AllToAll, Incast, Outcast, Pair, Permutation, PingPong
from emu.spec.traffic.random_traffic import Background, HotSpot
from emu.spec.traffic.storage import StorageEntry
from emu.spec.traffic.trace import TraceEntry
from emu.spec.traffic.training import TrainingStep

Patterns = Incast | Outcast | Pair | PingPong | Permutation | AllToAll | HotSpot | Background
Collectives = AllReduce | ReduceScatter | AllGather | Broadcast | AllToAllPieces

Training = TrainingStep | Experts

TrafficSpec = Annotated[
    Patterns | Collectives | Training | Inference | StorageEntry | TraceEntry,
    Field(discriminator="pattern"),
]
