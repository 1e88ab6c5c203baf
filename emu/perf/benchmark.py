"""A benchmark is a fabric with one pair's messages on it, and nothing else.

_bw     h1 keeps `depth` messages on their way to h2
_lat    SEND, WRITE: a ping-pong, of which half is told
        READ, atomics: one after another, each there and back
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from emu.spec.model import Spec, changed
from traffic.graph import Verb

_VERBS = {
    "write": Verb.WRITE,
    "read": Verb.READ,
    "send": Verb.SEND,
    "atomic": Verb.FETCH_ADD,
}
NAMES = tuple(f"{verb}_{figure}" for verb in _VERBS for figure in ("bw", "lat"))
"""As perftest's programs are called, without `ib_`."""
DEFAULT = """
name: perf
topology:
  kind: graph
  switches: [s1]
  hosts: [h1, h2]
  links: [{between: [h1, s1], rate: 100Gbit}, {between: [h2, s1], rate: 100Gbit}]
"""
"""The pair that is measured where no spec is given."""
TRAFFIC = "perf"
_LONG = "1000s"


@dataclass(frozen=True)
class Ends:
    """The two hosts."""

    src: str
    """Who sends or asks."""
    dst: str


@dataclass(frozen=True)
class Benchmark:
    """What is measured, and how."""

    name: str
    """One of `NAMES`."""
    iterations: int = 1000
    depth: int = 128
    """Messages on their way at a time, of a bandwidth."""
    transport: str = "rc"

    @property
    def verb(self) -> Verb:
        return _VERBS[self.name.partition("_")[0]]

    @property
    def is_latency(self) -> bool:
        return self.name.endswith("_lat")

    @property
    def halves(self) -> bool:
        """Whether a request is there and back again, and the figure one of both."""
        return self.is_latency and not self.verb.fetches

    def entry(self, ends: Ends, size_bytes: int) -> dict[str, Any]:
        """Its entry of a spec's `traffic:`."""
        return {
            "name": TRAFFIC,
            "pattern": "ping-pong" if self.halves else "pair",
            "from": ends.src,
            "to": ends.dst,
            "op": self.verb.value,
            "transport": self.transport,
            "size": size_bytes,
            "count": self.iterations,
            "outstanding": 1 if self.is_latency else self.depth,
            "start": "100us",  # when every link is up, and credit is there
        }

    def spec(
        self, fabric: Spec, ends: Ends, size_bytes: int, payload: Literal["real", "elided"]
    ) -> Spec:
        """The fabric with this benchmark on it. Raises SpecError where they do not go together."""
        changes = {
            "traffic": [self.entry(ends, size_bytes)],
            "time_limit": _LONG,
            "payload": payload,
        }
        asked = f"{self.name} -c {self.transport.upper()} -s {size_bytes} -n {self.iterations}"
        return changed(fabric, changes, source=f"{asked} on {fabric.name}")
