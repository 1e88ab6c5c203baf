"""A lab for programs that use RDMA verbs themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from emu.bgp.recorder import with_learned_routes
from emu.bindings.capture import CaptureFile, capture_file, captured_ports
from emu.bindings.fabric import Fabric, NodeSubset
from emu.clocks import ClockName
from emu.errors import UsageError
from emu.rdma.clock import Clock, VirtualClock
from emu.rdma.context import Context
from emu.spec.diagnostic import unknown_name
from emu.spec.model import load_spec
from emu.spec.outages import slowest_convergence_ps
from emu.spec.scenario import Spec
from emu.subnet.sm_sweeps import swept
from emu.subnet.subnet import PathSLs, Subnet

T = TypeVar("T")


@dataclass(frozen=True)
class LabHost:
    """A host of the lab."""

    name: str
    rdma: Context
    """Its RDMA NIC."""


class Lab:
    """A spec's fabric, which is up while the `with` block runs. Its `traffic:` is not started.

    On the virtual clock, the spec's captures are written into `out` at the end. On the exact and
    the real clock, it is a lab like that of `emu up`; `emu capture` and other commands find it by
    `name`. It ends with the program. The exact clock gives the times of the virtual one: emulated
    time passes while the program awaits something.
    """

    def __init__(
        self,
        spec: Path | str | Spec,
        *changes: str,
        clock: ClockName = "virtual",
        out: Path | None = None,
    ) -> None:
        """`changes` to a spec's file have the form KEY=VALUE, as for `emu run --set`.

        Raises SpecError, UsageError, HostError.
        """
        self.spec = spec if isinstance(spec, Spec) else load_spec(Path(spec), changes)
        self._start_clock = self._starter(clock)
        self._out = out
        self._stack = ExitStack()
        self._hosts: dict[str, LabHost] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._clock = self._start_clock(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def now_ns(self) -> int:
        """Emulated time."""
        return self._clock.now_ns

    def host(self, name: str) -> LabHost:
        """The host with this name. Raises UsageError for a host that the spec does not have."""
        if name not in self._hosts:
            raise UsageError(unknown_name("host", name, list(self._hosts)))
        return self._hosts[name]

    async def sleep(self, time_ns: float) -> None:
        """Lets `time_ns` of emulated time pass."""
        await self._clock.until(_never, self.now_ns + time_ns)

    def run(self, program: Awaitable[T]) -> T:
        """Runs a coroutine to its end, in an event loop of its own."""
        return asyncio.run(_as_coroutine(program))

    # ---- building --------------------------------------------------------------

    def _starter(self, clock: str) -> Callable[[ExitStack], Clock]:
        starters = {
            "virtual": self._on_virtual_clock,
            "exact": self._on_exact_clock,
            "real": self._on_real_clock,
        }
        if clock not in starters:
            raise UsageError(unknown_name("clock", clock, list(starters)))
        return starters[clock]

    def _on_virtual_clock(self, stack: ExitStack) -> Clock:
        self.spec = with_learned_routes(self.spec)
        subnet = swept(self.spec, self.spec.topology.build(), all_pairs=True)
        fabric = self._fabric(stack, NodeSubset.ALL, subnet)
        fabric.capture(captured_ports(self.spec, fabric.topology))
        capture = stack.enter_context(capture_file(fabric))
        stack.callback(self._keep_captures, capture)
        clock = VirtualClock(fabric, capture.drain if self.spec.capture else lambda: None)
        self._add_hosts(clock, subnet, lambda: self._levels_in_force(subnet))
        fabric.start()
        return clock

    def _on_exact_clock(self, stack: ExitStack) -> Clock:
        from emu.rdma.exact_clock import ExactClock, exact_lab  # needs Mininet

        self.spec, lab, sockets = stack.enter_context(exact_lab(self.spec))
        fabric = self._fabric(stack, NodeSubset.HOSTS, sockets.subnet, exact=True)
        clock = ExactClock(fabric, lab, sockets)
        stack.callback(clock.close)
        self._add_hosts(clock, sockets.subnet, sockets.levels)
        clock.start()
        return clock

    def _on_real_clock(self, stack: ExitStack) -> Clock:
        from emu.rdma.real_clock import RealClock, lab_in_namespaces  # needs Mininet

        self.spec, slowdown, sockets = stack.enter_context(lab_in_namespaces(self.spec))
        fabric = self._fabric(stack, NodeSubset.HOSTS, sockets.subnet)
        clock = RealClock(fabric, slowdown, sockets)
        self._add_hosts(clock, sockets.subnet, sockets.levels)
        stack.callback(clock.close)
        clock.start()
        return clock

    def _fabric(
        self,
        stack: ExitStack,
        members: NodeSubset,
        subnet: Subnet | None,
        *,
        exact: bool = False,
    ) -> Fabric:
        """The fabric. Contexts are closed before it, because its clock still has the timers of
        their queues."""
        topology = self.spec.topology.build()
        fabric = Fabric(self.spec, topology, members, subnet=subnet, exact=exact)
        stack.enter_context(fabric)
        stack.callback(self._close_contexts)
        return fabric

    def _close_contexts(self) -> None:
        for host in self._hosts.values():
            host.rdma.close()

    def _add_hosts(
        self, clock: Clock, subnet: Subnet | None, levels: Callable[[], PathSLs]
    ) -> None:
        for host in clock.fabric.topology.hosts:
            context = Context(clock, host, subnet, levels=levels)
            self._hosts[host.name] = LabHost(host.name, context)
        clock.fabric.connect()

    def _levels_in_force(self, subnet: Subnet | None) -> PathSLs:
        """The service levels that are in force together with the routing tables."""
        since_ps = self.now_ns * 1000 - slowest_convergence_ps(self.spec)
        return subnet.levels_after(since_ps) if subnet else {}

    def _keep_captures(self, capture: CaptureFile) -> None:
        if self._out is not None:
            capture.convert(self._out)


def _never() -> Any:
    return None


async def _as_coroutine(program: Awaitable[T]) -> T:
    return await program
