"""The connection managers of all hosts, and the packets between them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from emu.rdma.context import Context
from emu.verbs.cm.deadlines import Deadlines
from emu.verbs.cm.gsi import GeneralServices
from emu.verbs.cm.ids import ProgramIds
from emu.verbs.cm.manager import Manager
from emu.verbs.cm.network import HostNetwork


class ConnectionManagers:
    """One for each host."""

    def __init__(self, contexts: Mapping[str, Context]) -> None:
        """The NICs must be connected to the fabric already."""
        hosts = tuple(contexts.values())
        self._clock = hosts[0].clock
        self._gsi = GeneralServices(hosts)
        self._deadlines = Deadlines()
        self._networks = [HostNetwork(context, hosts) for context in hosts]
        self._managers = [
            Manager(
                network,
                partial(self._gsi.send, number),
                self._deadlines,
                seed=f"{context.spec.seed} {context.name} connections",
            )
            for number, (network, context) in enumerate(zip(self._networks, hosts, strict=True))
        ]
        self._number = {context.name: number for number, context in enumerate(hosts)}

    def ids_of(self, context: Context, client: Any) -> ProgramIds:
        """Those of a new program on this host. `client`: a `struct uverbs_client *`."""
        number = self._number[context.name]
        return ProgramIds(
            self._networks[number], self._managers[number], client, lambda: self._clock.now_ps
        )

    @property
    def deadline_ps(self) -> int | None:
        """When `go_on` must be called at the latest."""
        return self._deadlines.earliest_ps

    def go_on(self) -> None:
        """Takes what has come, and does what is due."""
        now_ps = self._clock.now_ps
        for number, source, packet in self._gsi.received():
            self._managers[number].receive(source, packet, now_ps=now_ps)
        if self._deadlines.earliest_ps is not None:
            self._deadlines.expire(now_ps)
