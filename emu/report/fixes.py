"""Settings that cure a pathology in this run's spec, each as `--set KEY=VALUE` takes it.

Each key is set at the level where the spec gave it: port, switch, role or all. A value at a
wider level would change nothing, because the value at the narrower level overrides it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from emu.errors import SpecError
from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts
from emu.spec.classes import Classes
from emu.spec.derived import late_curves
from emu.spec.diagnostic import KeyPath, dotted
from emu.spec.fault import fault_names
from emu.spec.from_code import with_settings
from emu.spec.rules.provenance import for_host, for_port, for_switch
from emu.spec.rules.small_steps import steps_in_proportion
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS, PS_PER_US, ack_timeout_ps, write_size, write_time
from topologies.graph import Port

Settings = tuple[str, ...]

_TIMEOUT_OF_REAL_NICS, _LONGEST_TIMEOUT = 14, 31
"""67 ms, which RDMA programs on mlx5 use; and the largest code of the field."""
_TOLERATED_PACKETS = 256
"""More packets than overtake each other on equal paths of a fabric."""
_MAPS = ("trust", "dscp", "other_dscp", "pcp", "untagged")
"""Keys of `classes` that decide a packet's priority."""


def effective(spec: Spec, settings: Settings) -> Settings:
    """`settings`, or none when they make the spec invalid or change nothing."""
    with_them = _changed(spec, settings) if settings else None
    return () if with_them is None or with_them == spec else settings


def watchdog(run: RunFacts, switch: str, *, looks: int, storm_ns: float | None = None) -> Settings:
    """A PFC watchdog like SONiC's, with times so short that it can look `looks` times during the
    run, or during one storm of `storm_ns`."""
    own = run.spec.switch(switch).watchdog
    if own is not None and own.action == "alert":
        return (f"{dotted(for_switch(run.spec, switch, 'watchdog', 'action'))}=drop",)
    seen_ps = run.spec.time_limit_ps if storm_ns is None else round(storm_ns) * PS_PER_NS
    longest_us = min(seen_ps, run.spec.time_limit_ps) // looks // PS_PER_US
    detection = _round_down(max(longest_us, 2)) * PS_PER_US
    times = {"detection": detection, "restoration": detection, "poll": detection // 2}
    written = ", ".join(f"{key}: {write_time(ps)}" for key, ps in times.items())
    return (f"{dotted(for_switch(run.spec, switch, 'watchdog'))}={{{written}}}",)


def nics(run: RunFacts, hosts: Iterable[str], key: str, value: str) -> Settings:
    """Sets one key of the NICs of these hosts."""
    keys = (dotted(for_host(run.spec, host, "nic", key)) for host in hosts)
    return tuple(dict.fromkeys(f"{own}={value}" for own in keys))


def any_order(run: RunFacts, hosts: Iterable[str]) -> Settings:
    """Loss recovery that accepts packets in any order and waits before it reports one as lost."""
    wanted = (("recovery", "selective-repeat"), ("reordering", str(_TOLERATED_PACKETS)))
    keys = (
        f"{dotted(for_host(run.spec, host, 'nic', key))}={value}"
        for key, value in wanted
        for host in sorted(hosts)
    )
    return tuple(dict.fromkeys(keys))


def headroom(run: RunFacts, port: Port) -> Settings:
    """The headroom that the standard's worst case needs."""
    return (f"{_key(run.spec, port, 'pfc', 'headroom')}=auto",)


def longer_timeout(run: RunFacts, flows: Iterable[FlowRecord]) -> Settings:
    """ACK timeouts as real NICs have them, or longer ones where retries must last for the whole
    run. They are set at the requesters, which run the timer."""
    return tuple(dict.fromkeys(setting for flow in flows for setting in _longer_timeout(run, flow)))


def _longer_timeout(run: RunFacts, flow: FlowRecord) -> Settings:
    nic = run.spec.host(flow.src).nic
    codes = range(_TIMEOUT_OF_REAL_NICS, _LONGEST_TIMEOUT + 1)
    tries = nic.retry_count + 1
    lasting = (code for code in codes if tries * ack_timeout_ps(code) > run.spec.time_limit_ps)
    code = next(lasting, _LONGEST_TIMEOUT)
    return nics(run, [flow.src], "timeout", str(code)) if 0 < nic.timeout < code else ()


def loop_free_routes(run: RunFacts, switch: str) -> Settings:
    """Up/down routing. Where OpenSM finds no roots by itself, `switch` is the root."""
    engine = "subnet.engine=updn"
    for settings in ((engine,), (engine, f"subnet.roots=[{switch}]")):
        if effective(run.spec, settings):
            return settings
    return ()


def without_fault(run: RunFacts, name: str) -> Settings:
    """All faults of the spec but this one, each under its old name. Random faults may draw other
    numbers, because the seed of a fault depends on its place in the list."""
    named = zip(fault_names(run.spec.faults), run.spec.faults, strict=True)
    others = [{"name": own, **fault.to_mapping()} for own, fault in named if own != name]
    return (f"faults={json.dumps(others)}",)


def lossless(run: RunFacts, priority: int) -> Settings:
    """PFC for a priority at every port, and buffers with room for the headroom."""
    wanted: dict[str, list[int]] = {}
    for port in run.topology.switch_ports:
        pfc = run.spec.port(port).pfc
        others = pfc.priorities if pfc else ()
        if priority not in others:
            wanted[_key(run.spec, port, "pfc", "priorities")] = sorted({priority, *others})
    settings = tuple(f"{key}={priorities}" for key, priorities in wanted.items())
    return settings + _room_for(run.spec, settings)


def congestion_control(run: RunFacts) -> Settings:
    """The missing parts of congestion control: reaction in NICs, and marks before pauses."""
    deaf = [host for host in run.senders if not _hears_marks(run.spec, host)]
    deaf_ports = [port for port in run.topology.switch_ports if run.spec.port(port).ecn is None]
    on = () if run.spec.marks_ce else _marking(run, deaf_ports)
    return dcqcn(run, deaf) + on + early_marks(run, late_ports(run))


def dcqcn(run: RunFacts, hosts: Sequence[str]) -> Settings:
    """DCQCN in the NICs of these hosts, with increase steps in proportion to their link rates."""
    steps = [setting for host in hosts for setting in steps_in_proportion(run.spec, host)]
    return (*nics(run, hosts, "cc", "dcqcn"), *dict.fromkeys(steps))


def _marking(run: RunFacts, ports: Iterable[Port]) -> Settings:
    """ECN at ports where it is off, with thresholds derived from rate and buffer."""
    keys = (dotted(for_port(run.spec, port, "ecn")) for port in ports)
    return tuple(f"{key}=on" for key in dict.fromkeys(keys))


def late_ports(run: RunFacts) -> list[Port]:
    """Ports that pause before they mark: Kmin of a lossless queue is above XOFF."""
    return [port for port in run.topology.switch_ports if late_curves(run.spec, port)]


def early_marks(run: RunFacts, ports: Iterable[Port]) -> Settings:
    """Kmin and Kmax derived from rate and buffer, below the threshold at which queues pause."""
    paths = (
        dotted(for_port(run.spec, port, *section, key))
        for port in ports
        for section in late_curves(run.spec, port)
        for key in ("kmin", "kmax")
    )
    return tuple(f"{path}=auto" for path in dict.fromkeys(paths))


def xoff_bytes(spec: Spec, port: Port) -> int:
    """The most that one port may buffer while all others are empty."""
    return spec.port_scale(port).limit.size_bytes


def same_map(run: RunFacts, port: Port, right: Classes) -> Settings:
    """Maps packets that arrive at a port to the priorities that `right` gives them."""
    settings: Settings = ()
    own = run.spec.port(port).classes
    for key in _MAPS:
        value = _as_in(own, right, key)
        if value != getattr(own, key):
            settings += _mapped(run, port, settings, key, value)
    return settings


def wants_tags(run: RunFacts, host: str) -> bool:
    """Whether the leaf trusts PCP while the host sends frames without a VLAN tag."""
    is_tagged = run.spec.host(host).nic.vlan is not None
    return run.spec.port(leaf_port(run, host)).classes.trust == "pcp" and not is_tagged


def same_priorities(run: RunFacts, host: str) -> Settings:
    """Makes the leaf map the host's packets to the priorities that the NIC uses."""
    bare = [name for name in run.topology.host if wants_tags(run, name)]
    if host in bare:
        keys = (dotted(for_host(run.spec, name, "nic", "vlan")) for name in bare)
        return tuple(dict.fromkeys(f"{key}=0" for key in keys))
    leaf, known = leaf_port(run, host), run.spec.classes_of(host)
    by_pcp = run.spec.port(leaf).classes.trust == "pcp"
    return same_map(
        run, leaf, known.model_copy(update={"trust": "pcp", "pcp": {}}) if by_pcp else known
    )


def leaf_port(run: RunFacts, host: str) -> Port:
    """The port of the leaf switch that the host is connected to."""
    return run.topology.peer[run.topology.ports[host][0]]


# --- how they are written ---


def _round_down(count: int) -> int:
    """Rounds down to one even digit, or a power of ten: 99 to 80, 105 to 100, 3 to 2."""
    step: int = 10 ** (len(str(count)) - 1)
    return max(digit * step for digit in (1, 2, 4, 6, 8) if digit * step <= count)


def _key(spec: Spec, port: Port, section: str, key: str) -> str:
    """The path at which the spec gives a key of a port's section, or turns the section off."""
    if getattr(spec.port(port), section) is None:
        return dotted((*for_port(spec, port, section), key))
    return dotted(for_port(spec, port, section, key))


def _changed(spec: Spec, settings: Settings) -> Spec | None:
    """The spec with these settings; None when that is invalid."""
    try:
        return with_settings(spec, settings)
    except SpecError:
        return None


def _room_for(spec: Spec, settings: Settings) -> Settings:
    """Buffers doubled until the spec with these settings is valid."""
    for times in (2**doubled for doubled in range(10)):
        buffers = {
            dotted(for_switch(spec, switch, "buffer")): spec.switch(switch).buffer_bytes
            for switch in spec.topology.build().switch
            if times > 1
        }
        larger = tuple(f"{key}={write_size(times * size)}" for key, size in buffers.items())
        if _changed(spec, (*settings, *larger)) is not None:
            return larger
    return ()


def _hears_marks(spec: Spec, host: str) -> bool:
    """Whether the host's congestion control gets feedback about marked packets."""
    nic = spec.host(host).nic
    return nic.control(nic.cc).becn.by != "none"


def _as_in(own: Classes, right: Classes, key: str) -> Any:
    """The value that makes `own` equal to `right`. A key of a mapping stays unless it is set."""
    if key == "dscp":
        return {dscp: right.priority_of_dscp(dscp) for dscp in sorted({*own.dscp, *right.dscp})}
    if key == "pcp":
        return {pcp: right.priority_of_pcp(pcp) for pcp in sorted({*own.pcp, *right.pcp})}
    return getattr(right, key)


def _mapped(run: RunFacts, port: Port, before: Settings, key: str, value: Any) -> Settings:
    """Sets one key of a port's map at the widest level that no narrower level overrides."""
    neighbour = run.topology.port_name[port].partition(":")[2]
    node: KeyPath = ("switches", "nodes", port.node)
    for path in (
        for_port(run.spec, port, "classes", key),
        (*node, "classes", key),
        (*node, "ports", neighbour, "classes", key),
    ):
        setting = f"{dotted(path)}={json.dumps(value)}"
        then = _changed(run.spec, (*before, setting))
        if then is not None and getattr(then.port(port).classes, key) == value:
            return (setting,)
    return ()
