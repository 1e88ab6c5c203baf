"""The `traffic:` section: who sends how much to whom, as patterns over hosts."""

from typing import Annotated

from pydantic import Field

from emu.spec.traffic.collectives import AllReduce
from emu.spec.traffic.patterns import AllToAll, Incast, Pair, Permutation

TrafficSpec = Annotated[
    Incast | Pair | Permutation | AllToAll | AllReduce, Field(discriminator="pattern")
]
