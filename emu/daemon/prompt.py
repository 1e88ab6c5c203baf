"""`python -m emu.daemon.prompt SPEC TASKS FD`: Mininet's prompt in a lab that stands.

It runs inside the lab. Mininet knows the nodes anew, in namespaces that are there
already: TASKS is a JSON object that names a process or thread in each. FD is a conversation
with the lab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ask, Done, Json
from emu.lab.link_control import cables_by_faults
from emu.lab.net import FabricNet
from emu.lab.plan import LAB, AddCable, AddHost, AddSwitch, plan_nodes
from emu.lab.shell import FabricPrompt
from emu.spec.scenario import spec_from_json


def main() -> None:
    spec, tasks = spec_from_json(sys.argv[1]), json.loads(sys.argv[2])
    net = FabricNet(lambda node, pid: None)
    topology = spec.topology.build()
    bridges, infiniband = spec.plane_in_use == "ovs", not spec.fabric_kind.is_ethernet
    for step in plan_nodes(topology, bridges=bridges, infiniband=infiniband):
        match step:
            case AddHost(name, ip, interface):
                net.add_host(name, ip, tasks[name], interface)
            case AddSwitch(name, dpid):
                net.add_switch(name, dpid, tasks[LAB])
            case AddCable(a, b):
                net.add_cable(a, b)
    lab = Channel.inherited(int(sys.argv[3]))

    def ask(what: str, **options: Any) -> Json:
        lab.send(Ask(what, options))
        return lab.expect(Done).value

    def diagnose(node: str, command: Sequence[str]) -> str:
        said: str = ask("diagnose", node=node, command=list(command))["said"]
        return said

    def tap(port: str) -> int:
        ask("tap", port=port)
        (line,) = lab.take_files()
        return line

    net.on_cables = cables_by_faults(topology, lambda change: ask("faults", **asdict(change)))
    FabricPrompt(
        net,
        spec,
        lambda: ask("see"),
        tap,
        diagnose if spec.fabric_kind.has_subnet_manager else None,
    )


if __name__ == "__main__":
    main()
