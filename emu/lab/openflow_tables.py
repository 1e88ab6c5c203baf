"""Keeps Open vSwitch's tables as the routes of a running lab are.

Loading takes some milliseconds a switch, so a thread does it; changes that come in the meantime are
loaded together. Until then the shim chooses the ports.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from emu.errors import EmuError
from emu.lab import ovs
from emu.lab.routes import GroupIds, NextHops, RouteTable, change_lines, route_table
from emu.spec.scenario import Spec

OnLoaded = Callable[[int], None]
"""A function that gets the number of the last update that is loaded. It may raise EOFError."""


class OpenFlowTables:
    """The tables of all switches. They begin with those of `route_tables(live=True)`."""

    def __init__(self, spec: Spec, notes: list[str], on_loaded: OnLoaded) -> None:
        """`notes` gets one if Open vSwitch refuses an update. `on_loaded` is called on a thread."""
        self._spec = spec
        self._notes = notes
        self._on_loaded = on_loaded
        next_hops = spec.topology.build().next_hops
        self._ids: dict[str, GroupIds] = {switch: {} for switch in next_hops}
        self._tables = {switch: self._table(switch, hops) for switch, hops in next_hops.items()}
        self._waiting: dict[str, NextHops] = {}
        self._number = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._keep, name="tables", daemon=True).start()

    def update(self, number: int, next_hops: Mapping[str, NextHops]) -> None:
        """The next hops of these switches have changed. `number` counts updates."""
        with self._changed:
            self._waiting.update(next_hops)
            self._number = number
            self._changed.notify()

    def _keep(self) -> None:
        loaded = 0
        with suppress(EOFError):
            while True:
                number, waiting = self._next(loaded)
                if self._load(waiting):
                    self._on_loaded(number)
                loaded = number

    def _next(self, loaded: int) -> tuple[int, dict[str, NextHops]]:
        """The next update, after the one with the number `loaded`, once there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != loaded)
            waiting, self._waiting = self._waiting, {}
            return self._number, waiting

    def _load(self, waiting: Mapping[str, NextHops]) -> bool:
        try:
            for switch, next_hops in waiting.items():
                table = self._table(switch, next_hops)
                if lines := list(change_lines(self._tables[switch], table)):
                    ovs.load_lines(switch, lines)
                self._tables[switch] = table
        except EmuError as error:
            self._notes.append(
                f"Open vSwitch refused new routes; the shim chooses the ports: {error}"
            )
            return False
        return True

    def _table(self, switch: str, next_hops: NextHops) -> RouteTable:
        return route_table(self._spec, switch, next_hops, self._ids[switch], hinted=True)
