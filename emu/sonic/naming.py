"""emu's names of switches and hosts, and the numbers of cables between the same two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count

from emu.sonic.config_db import natural
from emu.sonic.device_types import Devices
from emu.sonic.fabric import Cable, Fabric, FoundCable, Node


def named_fabric(cables: Sequence[FoundCable], devices: Devices) -> Fabric:
    """The fabric of these cables: h1, h2, ... in the order of their switches and ports, and
    switches by their roles."""
    names = _switch_names(cables, devices)
    switches = {
        device: Node(
            name,
            device,
            devices.type.get(device, ""),
            devices.hwsku.get(device, ""),
            devices.config.get(device),
        )
        for device, name in names.items()
    }
    hosts = {
        cable: Node(f"h{number}", cable.b.device, devices.type.get(cable.b.device, ""))
        for number, cable in enumerate(_to_hosts(cables, names), start=1)
    }
    made: list[Cable] = []
    numbered: Counter[tuple[str, str]] = Counter()
    for cable in sorted(cables, key=_by_rate):
        a, b = switches[cable.a.device], hosts.get(cable) or switches[cable.b.device]
        for own, far, end in ((a, b, cable.a), (b, a, cable.b)):
            numbered[own.name, far.name] += 1
            number = numbered[own.name, far.name]
            if end.port:
                own.ports[far.name if number == 1 else f"{far.name}#{number}"] = end.port
        is_lower = cable in hosts or natural(a.name) < natural(b.name)
        ends = (a.name, b.name) if is_lower else (b.name, a.name)
        made.append(Cable(*ends, cable.rate_bps, cable.metres))
    return Fabric(
        tuple(sorted(switches.values(), key=lambda node: natural(node.name))),
        tuple(hosts.values()),
        tuple(sorted(made, key=lambda cable: (natural(cable.a), natural(cable.b)))),
    )


def _to_hosts(cables: Sequence[FoundCable], names: Mapping[str, str]) -> list[FoundCable]:
    """The cables to hosts, in the order of their switches and ports."""
    to_hosts = [cable for cable in cables if cable.b.device not in names]
    return sorted(to_hosts, key=lambda own: (natural(names[own.a.device]), natural(own.a.port)))


def _by_rate(cable: FoundCable) -> tuple[object, ...]:
    """By rate and delay, as topologies number the cables between the same two nodes."""
    return cable.rate_bps, cable.metres, natural(cable.a.port)


def _switch_names(cables: Sequence[FoundCable], devices: Devices) -> dict[str, str]:
    """emu's name of each switch: its own if it is a role and a number, else the next free."""
    ends = sorted({end.device for cable in cables for end in (cable.a, cable.b)}, key=natural)
    roles = {device: devices.role(device) for device in ends if not devices.is_server(device)}
    names = {
        device: device
        for device, role in roles.items()
        if re.fullmatch(f"{role}[1-9][0-9]{{0,3}}", device)
    }
    taken = set(names.values())
    for device, role in roles.items():
        if device not in names:
            free = (f"{role}{number}" for number in count(1))
            names[device] = next(name for name in free if name not in taken)
            taken.add(names[device])
    return names
