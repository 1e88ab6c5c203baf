"""Rules for the merged settings of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from emu.spec.classes import PRIORITIES
from emu.spec.diagnostic import Diagnostic, KeyPath, unknown_name
from emu.spec.headroom import HEADERS, headroom_of
from emu.spec.rules.provenance import for_port, for_switch, is_written
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, Pfc, SwitchSpec
from emu.units import write_size, write_time
from topologies.graph import Port

_TOPOLOGY: KeyPath = ("topology",)


def _switches(spec: Spec) -> Iterator[tuple[str, SwitchSpec]]:
    for name in spec.topology.build().switch:
        yield name, spec.switch(name)


def _ethernet_switches(spec: Spec) -> Iterator[tuple[str, SwitchSpec]]:
    """The switches that use PFC and ECN: none on InfiniBand."""
    if spec.fabric_kind.is_ethernet:
        yield from _switches(spec)


def _ethernet_ports(spec: Spec) -> Iterator[tuple[Port, SwitchSpec]]:
    """Every port of the switches on Ethernet, with its settings."""
    topology = spec.topology.build()
    for name, _ in _ethernet_switches(spec):
        yield from ((port, spec.port(port)) for port in topology.ports[name])


def _pfc_ports(spec: Spec) -> Iterator[tuple[Port, Pfc]]:
    """The ports with PFC. Of a switch's ports with the same settings, only the first."""
    topology = spec.topology.build()
    for name, _ in _ethernet_switches(spec):
        distinct: dict[int, tuple[Port, SwitchSpec]] = {}
        for port in topology.ports[name]:
            own = spec.given_port(port)
            distinct.setdefault(id(own), (port, own))
        yield from ((port, own.pfc) for port, own in distinct.values() if own.pfc is not None)


def roles_and_nodes_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    roles = sorted({role for own in topology.roles.values() for role in own})
    for section, what, named, known in (
        ("roles", "role", spec.switches.roles, roles),
        ("nodes", "switch", spec.switches.nodes, list(topology.switch)),
    ):
        for name in named:
            if name not in known:
                path = ("switches", section, name)
                yield Diagnostic(path, unknown_name(what, name, known), about=(_TOPOLOGY,))


def ports_exist(spec: Spec) -> Iterator[Diagnostic]:
    """A port's name in the settings of several switches must be a neighbour of one of them."""
    topology = spec.topology.build()
    neighbours = {
        switch.name: [topology.port_name[p].partition(":")[2] for p in topology.ports[switch.name]]
        for switch in topology.switches
    }
    for path, settings, names in _layers(spec):
        known = sorted({port for name in names for port in neighbours.get(name, ())})
        for port in settings.ports:
            if port not in known:
                text = unknown_name("neighbour", port, known)
                yield Diagnostic((*path, "ports", port), text, about=(_TOPOLOGY,))


def _layers(spec: Spec) -> Iterator[tuple[KeyPath, SwitchSpec, list[str]]]:
    """Each layer of settings: its path, the settings, and the names of its switches."""
    roles = spec.topology.build().roles
    yield ("switches",), spec.switches, list(roles)
    for role, settings in spec.switches.roles.items():
        yield ("switches", "roles", role), settings, [s for s, own in roles.items() if role in own]
    for name, settings in spec.switches.nodes.items():
        yield ("switches", "nodes", name), settings, [name]


def xon_is_not_above_xoff(spec: Spec) -> Iterator[Diagnostic]:
    for port, pfc in _pfc_ports(spec):
        if 0 < pfc.xoff.size_bytes < pfc.xon_bytes:
            yield Diagnostic(
                for_port(spec, port, "pfc", "xon"),
                f"xon ({write_size(pfc.xon_bytes)}) is above xoff ({pfc.xoff}): "
                "the sender would resume before it is paused; lower xon or raise xoff",
                about=(for_port(spec, port, "pfc", "xoff"),),
            )


def xon_is_of_the_same_sort_as_xoff(spec: Spec) -> Iterator[Diagnostic]:
    """If one layer gives both keys, one of them would have no effect."""
    for port, pfc in _pfc_ports(spec):
        idle, used = ("xon_offset", "xon") if pfc.xoff.size_bytes else ("xon", "xon_offset")
        path, xoff = (for_port(spec, port, "pfc", key) for key in (idle, "xoff"))
        if path[:-1] == xoff[:-1] and is_written(spec, path) and is_written(spec, xoff):
            text = f"{idle} has no effect when xoff is {pfc.xoff}; use {used}"
            yield Diagnostic(path, text, about=(xoff,), idle_if_inherited=True)


def xon_is_above_nothing(spec: Spec) -> Iterator[Diagnostic]:
    """With an alpha, the threshold is largest when the whole pool is free."""
    for port, pfc in _pfc_ports(spec):
        if pfc.xoff.size_bytes:
            continue
        most = round(pfc.xoff.alpha * max(0, spec.shared_pool(port.node)))
        if pfc.xon_offset >= most > 0:
            xoff = for_port(spec, port, "pfc", "xoff")
            yield Diagnostic(
                for_port(spec, port, "pfc", "xon_offset"),
                f"xoff ({pfc.xoff}) is {write_size(most)} at most, so a paused sender would resume "
                f"at a negative number of bytes ({write_size(pfc.xon_offset)} below it); lower "
                "xon_offset, or raise xoff",
                about=(xoff, for_switch(spec, port.node, "buffer")),
            )


def lossless_priorities_fit_into_the_buffer(spec: Spec) -> Iterator[Diagnostic]:
    """Every port may fill xoff and headroom of every lossless priority at the same time."""
    too_small: dict[KeyPath, list[tuple[int, str, Diagnostic]]] = {}
    for name, switch in _ethernet_switches(spec):
        reserved = switch.buffer_bytes - spec.shared_pool(name)
        needed = sum(_thresholds(spec, name)) + reserved
        if needed > switch.buffer_bytes or reserved == switch.buffer_bytes:
            finding = _too_small_a_buffer(spec, name, reserved)
            too_small.setdefault(finding.path, []).append((needed, name, finding))
    for found in too_small.values():
        yield _of_the_neediest(found)


def _of_the_neediest(found: Sequence[tuple[int, str, Diagnostic]]) -> Diagnostic:
    """One finding for all switches whose buffer is too small because of the same key."""
    _, name, finding = max(found, key=lambda one: one[0])
    others = len(found) - 1
    if others:
        name += f" and {others} more switch{'es' if others > 1 else ''}"
    return replace(finding, text=f"{name}: {finding.text}")


def _thresholds(spec: Spec, switch: str) -> Iterator[int]:
    """The bytes of lossless priorities that each port may hold before it pauses them."""
    for port in spec.topology.build().ports[switch]:
        pfc = spec.port(port).pfc
        yield len(set(pfc.priorities)) * pfc.xoff.size_bytes if pfc else 0


def _too_small_a_buffer(spec: Spec, name: str, reserved: int) -> Diagnostic:
    """The finding for a switch, at the keys of the port that needs the most headroom."""
    ports = spec.topology.build().ports[name]
    port = max(ports, key=lambda port: (headroom_of(spec, port), spec.port(port).pfc is not None))
    pfc, buffer = spec.port(port).pfc, write_size(spec.switch(name).buffer_bytes)
    if pfc is None:
        return Diagnostic(
            for_switch(spec, name, "reserved"),
            f"{write_size(reserved)} reserved by all ports together are more than the buffer of "
            f"{buffer}; lower reserved, or raise buffer",
            about=(for_switch(spec, name, "buffer"), _TOPOLOGY),
        )
    kept = len(ports) * PRIORITIES * spec.switch(name).reserved_bytes
    if kept > reserved - kept:
        key, remedy = for_switch(spec, name, "reserved"), "lower reserved"
    elif pfc.headroom_bytes is None:
        mostly_xoff = sum(_thresholds(spec, name)) > reserved - kept
        remedy = "lower xoff" if mostly_xoff else "lower pause_response or the cables' length"
        key = for_port(spec, port, "pfc", "xoff")
    else:
        key, remedy = for_port(spec, port, "pfc", "headroom"), "lower xoff or headroom"
    words = "automatic headroom" if pfc.headroom_bytes is None else "headroom"
    beside = f" and {write_size(kept)} reserved" if kept else ""
    priorities = len(set(pfc.priorities))
    share = (
        f"{len(ports)} {'port' if len(ports) == 1 else 'ports'} x "
        f"{priorities} {'priority' if priorities == 1 else 'priorities'}"
    )
    return Diagnostic(
        key,
        f"{share} x xoff {pfc.xoff} and {words} of "
        f"{write_size(reserved - kept)}{beside} for all ports together are more than the buffer of "
        f"{buffer}, so lossless packets could be dropped; {remedy}, or raise buffer",
        about=(
            *(for_port(spec, port, "pfc", key) for key in ("xoff", "headroom", "priorities")),
            for_switch(spec, name, "buffer"),
            for_switch(spec, name, "reserved"),
            _TOPOLOGY,
        ),
    )


def kmin_is_not_above_kmax(spec: Spec) -> Iterator[Diagnostic]:
    for port, keys, curve in _curves(spec):
        if curve.kmin_bytes > curve.kmax_bytes:
            kmin, kmax = (for_port(spec, port, *keys, key) for key in ("kmin", "kmax"))
            yield Diagnostic(
                kmin if is_written(spec, kmin) or not is_written(spec, kmax) else kmax,
                f"kmin ({write_size(curve.kmin_bytes)}) is above kmax "
                f"({write_size(curve.kmax_bytes)}): marking would end before it begins; "
                "lower kmin or raise kmax",
                about=(kmin, kmax),
            )


def kmin_can_be_reached(spec: Spec) -> Iterator[Diagnostic]:
    for port, keys, curve in _curves(spec):
        buffer = spec.switch(port.node).buffer_bytes
        if curve.kmin_bytes >= buffer:
            yield Diagnostic(
                for_port(spec, port, *keys, "kmin"),
                f"no queue gets as deep as kmin ({write_size(curve.kmin_bytes)}) in a buffer of "
                f"{write_size(buffer)}; lower kmin, or raise buffer",
                about=(for_switch(spec, port.node, "buffer"),),
            )


def _curves(spec: Spec) -> Iterator[tuple[Port, tuple[str, ...], Curve]]:
    """Every curve of every port: the port, the keys of the curve's section, and the curve."""
    for port, settings in _ethernet_ports(spec):
        ecn = settings.ecn
        if ecn is None:
            continue
        yield port, ("ecn",), ecn
        for queue in ecn.queues:
            curve = ecn.curve(queue)
            if curve is not None:
                yield port, ("ecn", "queues", str(queue)), curve


def curves_are_of_queues_that_are_used(spec: Spec) -> Iterator[Diagnostic]:
    for port, settings in _ethernet_ports(spec):
        if settings.ecn is None or not settings.ecn.queues:
            continue
        used = {settings.classes.queue_of(priority) for priority in range(PRIORITIES)}
        for queue in settings.ecn.queues:
            if queue not in used:
                yield Diagnostic(
                    for_port(spec, port, "ecn", "queues", str(queue)),
                    f"no priority leads to queue {queue}, only to "
                    f"{', '.join(map(str, sorted(used)))}; take it out, or change classes.queue",
                    about=(for_port(spec, port, "classes", "queue"),),
                )


def weights_are_of_queues_that_are_used(spec: Spec) -> Iterator[Diagnostic]:
    for name, switch in _ethernet_switches(spec):
        if not switch.scheduling.weights:
            continue
        ports = spec.topology.build().ports[name]
        used = {
            spec.port(port).classes.queue_of(priority)
            for port in ports
            for priority in range(PRIORITIES)
        }
        for queue in sorted(switch.scheduling.weights.keys() - used):
            yield Diagnostic(
                for_switch(spec, name, "scheduling", "weights", str(queue)),
                f"no priority leads to queue {queue}, only to "
                f"{', '.join(map(str, sorted(used)))}; take it out, or change classes.queue",
                about=(for_switch(spec, name, "classes", "queue"),),
            )


def queue_limits_can_be_reached(spec: Spec) -> Iterator[Diagnostic]:
    for name, switch in _ethernet_switches(spec):
        limit = switch.queue_limit_bytes
        if limit is not None and limit > switch.buffer_bytes:
            yield Diagnostic(
                for_switch(spec, name, "queue_limit"),
                f"no queue gets as long as {write_size(limit)} in a buffer of "
                f"{write_size(switch.buffer_bytes)}; lower queue_limit, or raise buffer",
                about=(for_switch(spec, name, "buffer"),),
            )


def watchdogs_have_pfc_to_watch(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for name, switch in _ethernet_switches(spec):
        without = all(spec.port(port).pfc is None for port in topology.ports[name])
        if switch.watchdog is not None and without:
            yield Diagnostic(
                for_switch(spec, name, "watchdog"),
                "no port has PFC, so there is nothing to watch; give it pfc, or take this out",
                about=(for_switch(spec, name, "pfc"),),
                idle_if_inherited=True,
            )


def buffers_hold_a_packet(spec: Spec) -> Iterator[Diagnostic]:
    mtu = spec.largest_mtu
    for name, switch in _switches(spec):
        sizes: list[tuple[int | None, tuple[str, ...]]] = [
            (switch.buffer_bytes, ("buffer",)),
            (switch.credits.buffer_bytes, ("credits", "buffer")),
            *((size, ("credits", "lanes", str(vl))) for vl, size in switch.credits.lanes.items()),
        ]
        if not spec.fabric_kind.uses_credits:
            sizes.append((switch.queue_limit_bytes, ("queue_limit",)))
        for size, keys in sizes:
            if size is not None and size < mtu + HEADERS:
                yield Diagnostic(
                    for_switch(spec, name, *keys),
                    f"{write_size(size)} cannot hold one packet of mtu {mtu} and its headers; "
                    "raise it, or lower hosts.nic.mtu",
                    about=(("hosts",),),
                )


def lossy_queues_hold_a_packet(spec: Spec) -> Iterator[Diagnostic]:
    """With alpha a lossy queue of an idle switch may hold that share of the pool, and what is
    reserved."""
    packet = spec.largest_mtu + HEADERS
    for name, switch in _ethernet_switches(spec):
        share = spec.shared_pool(name) * round(switch.alpha * 1024) // 1024
        if switch.queue_limit_bytes is None and 0 <= share + switch.reserved_bytes < packet:
            yield Diagnostic(
                for_switch(spec, name, "alpha"),
                f"a lossy queue may hold {write_size(share + switch.reserved_bytes)} even while "
                f"nothing else is queued, which is less than one packet of mtu {spec.largest_mtu} "
                "and its headers; raise alpha, or lower hosts.nic.mtu",
                about=(for_switch(spec, name, "buffer"), ("hosts",)),
            )


def strict_priorities_have_no_weight(spec: Spec) -> Iterator[Diagnostic]:
    for name, switch in _switches(spec):
        scheduling = switch.scheduling
        for priority in sorted(scheduling.weights.keys() & set(scheduling.strict)):
            yield Diagnostic(
                for_switch(spec, name, "scheduling", "weights", str(priority)),
                f"priority {priority} is strict, so its weight has no effect; "
                "take it out of weights or out of strict",
                about=(for_switch(spec, name, "scheduling", "strict"),),
            )


def watchdogs_have_time_for_what_they_watch(spec: Spec) -> Iterator[Diagnostic]:
    for name, switch in _ethernet_switches(spec):
        dog = switch.watchdog
        if dog is None:
            continue
        if dog.poll_ps > dog.detection_ps:
            yield Diagnostic(
                for_switch(spec, name, "watchdog", "poll"),
                f"the watchdog polls every {write_time(dog.poll_ps)}, so a storm of "
                f"{write_time(dog.detection_ps)} (detection) could end undetected; lower poll",
                about=(for_switch(spec, name, "watchdog", "detection"),),
            )
        elif dog.detection_ps + dog.poll_ps > spec.time_limit_ps:
            yield Diagnostic(
                for_switch(spec, name, "watchdog", "detection"),
                f"the run ends (time_limit is {write_time(spec.time_limit_ps)}) before a "
                f"storm is detected ({write_time(dog.detection_ps + dog.poll_ps)}, detection and "
                "poll); lower these, or raise time_limit",
                about=(for_switch(spec, name, "watchdog", "poll"), ("time_limit",)),
            )


RULES = (
    roles_and_nodes_exist,
    ports_exist,
    xon_is_not_above_xoff,
    xon_is_of_the_same_sort_as_xoff,
    xon_is_above_nothing,
    lossless_priorities_fit_into_the_buffer,
    kmin_is_not_above_kmax,
    kmin_can_be_reached,
    curves_are_of_queues_that_are_used,
    weights_are_of_queues_that_are_used,
    queue_limits_can_be_reached,
    buffers_hold_a_packet,
    lossy_queues_hold_a_packet,
    strict_priorities_have_no_weight,
    watchdogs_have_pfc_to_watch,
    watchdogs_have_time_for_what_they_watch,
)
