"""The `traffic:` section: who sends how much to whom, as patterns over hosts."""

from typing import Annotated

from pydantic import Field

from emu.spec.traffic.collectives import AllReduce
from emu.spec.traffic.drawn import Background, HotSpot
from emu.spec.traffic.patterns import AllToAll, Incast, Outcast, Pair, Permutation

TrafficSpec = Annotated[
    Incast | Outcast | Pair | Permutation | AllToAll | HotSpot | Background | AllReduce,
    Field(discriminator="pattern"),
]
