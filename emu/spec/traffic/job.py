"""The base of entries that build their graph to know its flows and messages."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Self

from pydantic import PrivateAttr

from emu.spec.traffic.entry import AmongEntry, TrafficEntry
from topologies.graph import Topology
from traffic.collectives.channels import Servers, by_number
from traffic.graph import OperationGraph
from traffic.patterns import Pairs


class GraphEntry(TrafficEntry):
    """A pattern whose flows are taken from its graph."""

    def why_hosts_do_not_fit(self) -> str | None:
        """The reason why the hosts do not suit the pattern; None: they do."""
        return None

    @abstractmethod
    def put_together(self, seed: int) -> OperationGraph:
        """The operations and flows."""

    def graph(self, seed: int) -> OperationGraph:
        return _graph(self, seed)

    def pairs(self, seed: int) -> Pairs:
        return [(flow.src, flow.dst) for flow in self.graph(seed).message_flows]

    def ends(self, seed: int) -> dict[str, tuple[str, str]]:
        return {flow.name: (flow.src, flow.dst) for flow in self.graph(seed).message_flows}


class JobEntry(GraphEntry, AmongEntry):
    """Such a pattern among hosts that all have the same role."""

    _server_of: tuple[int, ...] = PrivateAttr(default=())
    """The number of each rank's server; empty while the servers are unknown."""

    def placed(self, topology: Topology, gpus: int | None = None) -> Self:
        entry = super().placed(topology, gpus)
        number = {host.name: place // (gpus or 1) for place, host in enumerate(topology.hosts)}
        if all(host in number for host in entry.among):
            entry._server_of = tuple(number[host] for host in entry.among)
        return entry

    @property
    def servers(self) -> Servers:
        """The ranks of each server. A rank without a known server is alone in one."""
        return by_number(self._server_of or range(len(self.among)))


@lru_cache(maxsize=8)
def _graph(entry: GraphEntry, seed: int) -> OperationGraph:
    """The operations and flows, built once."""
    return entry.put_together(seed)
