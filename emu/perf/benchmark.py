"""A benchmark is a fabric whose only traffic is the messages of one pair of hosts.

_bw     h1 keeps `depth` messages to h2 in flight
_lat    SEND, WRITE: a ping-pong, of which half the round-trip time is reported
        READ, atomics: one after another, with the whole round-trip time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from emu.spec.model import Spec, changed
from traffic.verb import Verb

_VERBS = {
    "write": Verb.WRITE,
    "read": Verb.READ,
    "send": Verb.SEND,
    "atomic": Verb.FETCH_ADD,
}
NAMES = tuple(f"{verb}_{figure}" for verb in _VERBS for figure in ("bw", "lat"))
"""The names of perftest's programs, without `ib_`."""
DEFAULT = """
name: perf
topology:
  kind: graph
  switches: [s1]
  hosts: [h1, h2]
  links: [{between: [h1, s1], rate: 100Gbit}, {between: [h2, s1], rate: 100Gbit}]
"""
"""The fabric that is measured when no spec is given."""
TRAFFIC = "perf"
_LONG = "1000s"


@dataclass(frozen=True)
class Ends:
    """The two hosts of a benchmark."""

    src: str
    """The host that sends or requests."""
    dst: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark with its settings."""

    name: str
    """One of `NAMES`."""
    iterations: int = 1000
    depth: int = 128
    """The number of messages in flight, for bandwidth."""
    transport: str = "rc"

    @property
    def verb(self) -> Verb:
        return _VERBS[self.name.partition("_")[0]]

    @property
    def is_latency(self) -> bool:
        return self.name.endswith("_lat")

    @property
    def halves(self) -> bool:
        """Whether the latency is half of the round-trip time."""
        return self.is_latency and not self.verb.fetches

    def entry(self, ends: Ends, size_bytes: int) -> dict[str, Any]:
        """The benchmark's entry in a spec's `traffic:`."""
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
            "start": "100us",  # when every link is up and has credit
        }

    def spec(
        self, fabric: Spec, ends: Ends, size_bytes: int, payload: Literal["real", "elided"]
    ) -> Spec:
        """The fabric with this benchmark as its traffic. Raises SpecError if that is invalid."""
        changes = {
            "traffic": [self.entry(ends, size_bytes)],
            "time_limit": _LONG,
            "payload": payload,
        }
        command = f"{self.name} -c {self.transport.upper()} -s {size_bytes} -n {self.iterations}"
        return changed(fabric, changes, source=f"{command} on {fabric.name}")
