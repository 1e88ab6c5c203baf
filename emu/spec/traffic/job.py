"""What entries have in common that put a graph together before they can tell what is in it."""

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
    """A pattern whose flows are those of its graph."""

    def misfit(self) -> str | None:
        """Why the hosts do not suit what they are to do; None: they do."""
        return None

    @abstractmethod
    def put_together(self, seed: int) -> OperationGraph:
        """Its operations and flows."""

    def graph(self, seed: int) -> OperationGraph:
        return _graph(self, seed)

    def pairs(self, seed: int) -> Pairs:
        return [(flow.src, flow.dst) for flow in self.graph(seed).message_flows]

    def ends(self, seed: int) -> dict[str, tuple[str, str]]:
        return {flow.name: (flow.src, flow.dst) for flow in self.graph(seed).message_flows}


class JobEntry(GraphEntry, AmongEntry):
    """The same among hosts that all play the same part."""

    _server_of: tuple[int, ...] = PrivateAttr(default=())
    """Of each rank the number of its server; empty while hosts have no places."""

    def placed(self, topology: Topology, gpus: int | None = None) -> Self:
        entry = super().placed(topology, gpus)
        number = {host.name: place // (gpus or 1) for place, host in enumerate(topology.hosts)}
        if all(host in number for host in entry.among):
            entry._server_of = tuple(number[host] for host in entry.among)
        return entry

    @property
    def servers(self) -> Servers:
        """The ranks of each server. A rank without a place is alone."""
        return by_number(self._server_of or range(len(self.among)))


@lru_cache(maxsize=8)
def _graph(entry: GraphEntry, seed: int) -> OperationGraph:
    """Everybody asks for it, so it is put together once."""
    return entry.put_together(seed)
