"""A benchmark is a fabric with one pair's messages on it, and nothing else.

_bw     h1 keeps `depth` messages on their way to h2
_lat    SEND, WRITE: a ping-pong, of which half is told
        READ, atomics: one after another, each there and back
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from emu.errors import UsageError
from emu.spec.merge import overlay
from emu.spec.model import Spec, spec_from_text
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

    def entry(self, src: str, dst: str, size_bytes: int) -> dict[str, Any]:
        """Its entry of a spec's `traffic:`."""
        return {
            "name": TRAFFIC,
            "pattern": "ping-pong" if self.halves else "pair",
            "from": src,
            "to": dst,
            "op": self.verb.value,
            "transport": self.transport,
            "size": size_bytes,
            "count": self.iterations,
            "outstanding": 1 if self.is_latency else self.depth,
            "start": "100us",  # when every link is up, and credit is there
        }

    def spec(self, fabric: Spec, ends: tuple[str | None, str | None], size_bytes: int) -> Spec:
        """The fabric with this benchmark on it. The first host and the last unless given.

        Raises SpecError for what the benchmark cannot do.
        """
        hosts = [host.name for host in fabric.topology.build().hosts]
        if len(hosts) < 2:
            raise UsageError("a benchmark needs two hosts; this spec has one")
        src, dst = ends[0] or hosts[0], ends[1] or hosts[-1]
        changes = {
            "traffic": [self.entry(src, dst, size_bytes)],
            "verify": [],
            "compare": {},
            "time_limit": _LONG,
        }
        text = json.dumps(overlay(fabric.to_mapping(), changes))
        return spec_from_text(text.encode(), source=f"{self.name} on {fabric.name}")
