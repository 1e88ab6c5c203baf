"""Settings that cure a pathology in this run's spec, each as after `--set KEY=VALUE`.

A key is written where it was given: for a port, for a switch, for its role or for all. A
nearer word would win over one that is told to all, and the setting would change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from emu.errors import SpecError
from emu.measure.recording import FlowRecord
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
"""67 ms, which mlx5's RDMA programs take; and the largest code there is."""
_TOLERATED_PACKETS = 256
"""More than overtake one another on paths of a fabric that are alike."""
_MAPS = ("trust", "dscp", "other_dscp", "pcp", "untagged")
"""Keys of `classes` that tell a packet's priority."""


def effective(spec: Spec, settings: Settings) -> Settings:
    """The same, or none when the spec with them is in error, or as it was."""
    with_them = _changed(spec, settings) if settings else None
    return () if with_them is None or with_them == spec else settings


def watchdog(run: RunFacts, switch: str, *, looks: int, storm_ns: float | None = None) -> Settings:
    """SONiC's, fast enough to find so many storms one after another in the run, or in the time of
    one storm."""
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
    """One key of these hosts' NICs."""
    keys = (dotted(for_host(run.spec, host, "nic", key)) for host in hosts)
    return tuple(dict.fromkeys(f"{own}={value}" for own in keys))


def any_order(run: RunFacts, hosts: Iterable[str]) -> Settings:
    """Recovery that takes packets as they come, and waits before it calls one lost."""
    wanted = (("recovery", "selective-repeat"), ("reordering", str(_TOLERATED_PACKETS)))
    keys = (
        f"{dotted(for_host(run.spec, host, 'nic', key))}={value}"
        for key, value in wanted
        for host in sorted(hosts)
    )
    return tuple(dict.fromkeys(keys))


def headroom(run: RunFacts, port: Port) -> Settings:
    """What the standard allows for."""
    return (f"{_key(run.spec, port, 'pfc', 'headroom')}=auto",)


def longer_timeout(run: RunFacts, flows: Iterable[FlowRecord]) -> Settings:
    """Time-outs of real NICs, or more where retries must last for the whole run; at those that
    asked, for theirs is the timer."""
    return tuple(dict.fromkeys(setting for flow in flows for setting in _longer_timeout(run, flow)))


def _longer_timeout(run: RunFacts, flow: FlowRecord) -> Settings:
    nic = run.spec.host(flow.src).nic
    codes = range(_TIMEOUT_OF_REAL_NICS, _LONGEST_TIMEOUT + 1)
    tries = nic.retry_count + 1
    lasting = (code for code in codes if tries * ack_timeout_ps(code) > run.spec.time_limit_ps)
    code = next(lasting, _LONGEST_TIMEOUT)
    return nics(run, [flow.src], "timeout", str(code)) if 0 < nic.timeout < code else ()


def loop_free_routes(run: RunFacts, switch: str) -> Settings:
    """Up and down a tree: by itself where OpenSM finds its roots, else from this switch on."""
    engine = "subnet.engine=updn"
    for settings in ((engine,), (engine, f"subnet.roots=[{switch}]")):
        if effective(run.spec, settings):
            return settings
    return ()


def without_fault(run: RunFacts, name: str) -> Settings:
    """All of the spec's faults but this, each under the name it has had. Those that draw numbers
    may draw others, as they do by their place in the list."""
    told = zip(fault_names(run.spec.faults), run.spec.faults, strict=True)
    others = [{"name": own, **fault.to_mapping()} for own, fault in told if own != name]
    return (f"faults={json.dumps(others)}",)


def lossless(run: RunFacts, priority: int) -> Settings:
    """PFC for a priority at every port, and buffers that hold what it asks for."""
    wanted: dict[str, list[int]] = {}
    for port in run.topology.switch_ports:
        pfc = run.spec.port(port).pfc
        others = pfc.priorities if pfc else ()
        if priority not in others:
            wanted[_key(run.spec, port, "pfc", "priorities")] = sorted({priority, *others})
    settings = tuple(f"{key}={priorities}" for key, priorities in wanted.items())
    return settings + _room_for(run.spec, settings)


def congestion_control(run: RunFacts) -> Settings:
    """What is missing of it: NICs that slow down at marks, and marks that come before pauses."""
    deaf = [host for host in run.senders if not _hears_marks(run.spec, host)]
    deaf_ports = [port for port in run.topology.switch_ports if run.spec.port(port).ecn is None]
    on = () if run.spec.marks else _marking(run, deaf_ports)
    return dcqcn(run, deaf) + on + early_marks(run, late_ports(run))


def dcqcn(run: RunFacts, hosts: Sequence[str]) -> Settings:
    """Of these hosts' NICs, with steps that fit their links."""
    steps = [setting for host in hosts for setting in steps_in_proportion(run.spec, host)]
    return (*nics(run, hosts, "cc", "dcqcn"), *dict.fromkeys(steps))


def _marking(run: RunFacts, ports: Iterable[Port]) -> Settings:
    """ECN where it is off, with thresholds that follow from rate and buffer."""
    keys = (dotted(for_port(run.spec, port, "ecn")) for port in ports)
    return tuple(f"{key}=on" for key in dict.fromkeys(keys))


def late_ports(run: RunFacts) -> list[Port]:
    """Those that pause before they mark: Kmin of a lossless queue is above XOFF."""
    return [port for port in run.topology.switch_ports if late_curves(run.spec, port)]


def early_marks(run: RunFacts, ports: Iterable[Port]) -> Settings:
    """Kmin and Kmax that follow from rate and buffer, which queues reach before they pause."""
    paths = (
        dotted(for_port(run.spec, port, *section, key))
        for port in ports
        for section in late_curves(run.spec, port)
        for key in ("kmin", "kmax")
    )
    return tuple(f"{path}=auto" for path in dict.fromkeys(paths))


def xoff_bytes(spec: Spec, port: Port) -> int:
    """What one port may hold when it alone is full."""
    return spec.port_scale(port).limit.size_bytes


def same_map(run: RunFacts, port: Port, right: Classes) -> Settings:
    """The priorities of what comes in by a port, as `right` has them."""
    settings: Settings = ()
    own = run.spec.port(port).classes
    for key in _MAPS:
        value = _as_in(own, right, key)
        if value != getattr(own, key):
            settings += _mapped(run, port, settings, key, value)
    return settings


def wants_tags(run: RunFacts, host: str) -> bool:
    """Whether a host's switch goes by VLAN tags that its frames do not have."""
    is_tagged = run.spec.host(host).nic.vlan is not None
    return run.spec.port(leaf_port(run, host)).classes.trust == "pcp" and not is_tagged


def same_priorities(run: RunFacts, host: str) -> Settings:
    """A switch has a host's packets on the priorities that its NIC has them on."""
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
    """The switch's, which a host is plugged into."""
    return run.topology.peer[run.topology.ports[host][0]]


# --- how they are written ---


def _round_down(count: int) -> int:
    """To one digit that halves evenly, as people choose times: 99 to 80, 105 to 100, 3 to 2."""
    step: int = 10 ** (len(str(count)) - 1)
    return max(digit * step for digit in (1, 2, 4, 6, 8) if digit * step <= count)


def _key(spec: Spec, port: Port, section: str, key: str) -> str:
    """Where a key of a port's section was given; where the section was turned off, there."""
    if getattr(spec.port(port), section) is None:
        return dotted((*for_port(spec, port, section), key))
    return dotted(for_port(spec, port, section, key))


def _changed(spec: Spec, settings: Settings) -> Spec | None:
    """None: it would be in error."""
    try:
        return with_settings(spec, settings)
    except SpecError:
        return None


def _room_for(spec: Spec, settings: Settings) -> Settings:
    """Buffers doubled as often as these settings want them larger."""
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
    """Whether its congestion control is told of marked packets."""
    nic = spec.host(host).nic
    return nic.control(nic.cc).becn.by != "none"


def _as_in(own: Classes, right: Classes, key: str) -> Any:
    """What to write for `own` to be as `right`: keys of a mapping stay unless they are told."""
    if key == "dscp":
        return {dscp: right.priority_of_dscp(dscp) for dscp in sorted({*own.dscp, *right.dscp})}
    if key == "pcp":
        return {pcp: right.priority_of_pcp(pcp) for pcp in sorted({*own.pcp, *right.pcp})}
    return getattr(right, key)


def _mapped(run: RunFacts, port: Port, before: Settings, key: str, value: Any) -> Settings:
    """One key of a port's map, at the first place where nothing nearer contradicts it."""
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
