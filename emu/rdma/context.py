"""An open RDMA device: the NIC of one host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import Any

from emu._core import ffi, lib
from emu.bindings.nic_config import address_of, nic_config, qp_config, set_recovery
from emu.errors import LocalProtocolError
from emu.measure.counter_table import NIC
from emu.rdma.clock import Clock
from emu.rdma.completion import CQ
from emu.rdma.memory import PD
from emu.rdma.names import QPType
from emu.spec.bdp import bdp_packets
from emu.spec.host import Nic
from emu.spec.scenario import Spec
from emu.subnet.subnet import PathSLs, Subnet
from topologies.graph import Cable, Host, Port, Topology
from topologies.guids import host_port_guid

MAX_QP = 4096
MAX_MR = 4096
_FIRST_ADDRESS = 0x1000_0000_0000
_PAGE = 4096


class Context:
    """The context of an open device, as `ibv_open_device` returns it.

    Objects made by it live as long as the lab, and so do registered arrays.
    """

    def __init__(
        self,
        clock: Clock,
        host: Host,
        subnet: Subnet | None,
        *,
        levels: Callable[[], PathSLs] = dict,
        leads_outside: bool = False,
    ) -> None:
        """`levels` returns the service levels in the subnet's present path records."""
        fabric = self._fabric = clock.fabric
        self.name = host.name
        self.clock = clock
        self.max_mr = MAX_MR
        self.host = host
        self._leads_outside = leads_outside
        self.patience_ns = fabric.spec.time_limit_ps / 1000
        """How long a program waits for a completion by default."""
        self._subnet = subnet
        self._levels = levels
        self._psns = Random(f"{fabric.spec.seed} {host.name}")
        self._free_address = _FIRST_ADDRESS
        self._domains = 0
        self._held: set[Any] = set()
        self._kept: dict[Any, Callable[[Any], None]] = {}
        config = nic_config(fabric, subnet, host, max_qps=MAX_QP, max_regions=MAX_MR)
        self.core = fabric.add_nic(host, config)

    @property
    def address(self) -> int:
        """The IPv4 address or LID by which other hosts reach this host."""
        return address_of(self._fabric, self._subnet, self.name)

    @property
    def active_mtu(self) -> int:
        """The most payload bytes in a packet."""
        return self._settings.mtu

    @property
    def max_qp_rd_atom(self) -> int:
        """The most READs and atomics that a queue pair may have outstanding in each direction."""
        return self._settings.max_rd_atomic

    @property
    def spec(self) -> Spec:
        return self._fabric.spec

    @property
    def topology(self) -> Topology:
        return self._fabric.topology

    @property
    def is_ethernet(self) -> bool:
        return self._fabric.spec.fabric_kind.is_ethernet

    @property
    def port(self) -> Port:
        return self._fabric.topology.ports[self.name][0]

    @property
    def cable(self) -> Cable:
        """The cable of the NIC's port."""
        return self._fabric.topology.cable[self.port]

    @property
    def vls(self) -> int:
        """The virtual lanes of the NIC's port, on InfiniBand: those of its switch."""
        return self.spec.switch(self.topology.peer[self.port].node).credits.vls

    @property
    def sl(self) -> int:
        """The service level that the spec gives the NIC, on InfiniBand."""
        return self._settings.sl

    @property
    def counters(self) -> dict[str, int]:
        """The NIC's counters, under the names of Linux' hw_counters where these exist."""
        cells = ffi.new("int64_t[]", len(NIC.cells))
        lib.nic_counter_cells(self.core, cells)
        return dict(zip(NIC.cells, cells, strict=True))

    def alloc_pd(self) -> PD:
        """A protection domain."""
        self._domains += 1
        return PD(self, self._domains)

    def create_cq(self, cqe: int) -> CQ:
        """A completion queue for up to `cqe` completions."""
        return CQ(self, cqe)

    # ---- for queue pairs, queues and memory regions ----------------------------

    def next_address(self, length: int) -> int:
        """The address of a new region of this length, which is the same in every run."""
        address = self._free_address
        self._free_address += -(-(length + 1) // _PAGE) * _PAGE
        return address

    def hold(self, held: Any) -> None:
        """Keeps an object alive that the NIC uses, until `release`."""
        self._held.add(held)

    def release(self, held: Any) -> None:
        """The NIC no longer uses an object that `hold` was given."""
        self._held.discard(held)

    def keep(self, made: Any, free: Callable[[Any], None]) -> Any:
        """Frees an object of the core when the context is closed, and returns it."""
        self._kept[made] = free
        return made

    def free(self, made: Any) -> None:
        """Frees what `keep` was given now."""
        self._kept.pop(made)(made)

    def close(self) -> None:
        """Frees what `keep` was given, newest first. The clock must have stopped."""
        while self._kept:
            made, free = self._kept.popitem()
            free(made)

    def qp_config(self, qp_type: QPType, pd: int, srq: Any) -> Any:
        """The `struct qp_config` of a new queue pair, from the spec of this host's NIC."""
        settings, spec = self._settings, self._fabric.spec
        dscp, priority = spec.dscp(self.name, None), spec.priority(self.name, None)
        psn = self._psns.getrandbits(24)
        config = qp_config(
            settings,
            settings,
            psn=psn,
            dscp=dscp,
            priority=priority,
            path_packets=lambda: self._farthest_window,
        )
        config.transport, config.pd = qp_type, pd
        config.max_dest_rd_atomic = settings.max_rd_atomic
        if srq is not None:
            config.srq = lib.verbs_srq_queue(srq)
        set_recovery(config, settings.recovery_scheme, lambda: self._farthest_window)
        return config

    def add_qp(self, config: Any) -> Any:
        """A new queue pair of the core. Raises LocalProtocolError when there are too many."""
        qp = lib.nic_add_qp(self.core, config)
        if not qp:
            raise LocalProtocolError(f"{self.name}: its NIC has room for {MAX_QP} queue pairs")
        return qp

    def reaches(self, address: int) -> bool:
        """Whether a host has that address; True for any address if the NIC leads outside."""
        hosts = self._fabric.topology.host
        return self._leads_outside or any(
            address == address_of(self._fabric, self._subnet, name) for name in hosts
        )

    def guid_of(self, address: int) -> int:
        """The GUID of that host's port, on InfiniBand."""
        by_lid = {lid: name for name, lid in (self._subnet.lids if self._subnet else {}).items()}
        host = self._fabric.topology.host.get(by_lid.get(address, ""))
        return host_port_guid(host) if host else 0

    def service_level(self, address: int) -> int:
        """The service level towards that host: the subnet manager's present choice, or the NIC's
        own level."""
        if self._subnet is None:
            return self._settings.sl
        by_name = self._levels().get(self.name, {})
        by_lid = {self._subnet.lids[name]: level for name, level in by_name.items()}
        return by_lid.get(address, self._settings.sl)

    @property
    def _settings(self) -> Nic:
        return self._fabric.spec.host(self.name).nic

    @cached_property
    def _farthest_window(self) -> int:
        """The window of selective repeat, which is fixed before the peer is known: it suits the
        longest path."""
        topology, spec = self._fabric.topology, self._fabric.spec
        others = [host for host in topology.host if host != self.name]
        return max(
            bdp_packets(topology, spec, self.name, other, self._settings.mtu) for other in others
        )
