"""`python -m emu.daemon.prompt SPEC TASKS FD`: Mininet's prompt in a background lab.

It runs inside the lab. Mininet gets objects for nodes whose namespaces exist already: TASKS is a
JSON object that names a process or thread in each. FD is a session with the lab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TypeVar

from emu.daemon.client import receive_answer
from emu.daemon.messages import Capture, RunTool
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Query
from emu.lab.ipc.queries import GetPorts
from emu.lab.link_control import cables_by_faults
from emu.lab.net import FabricNet
from emu.lab.plan import LAB, AddCable, AddHost, AddSwitch, plan_nodes
from emu.lab.shell import FabricPrompt
from emu.spec.scenario import spec_from_json

A = TypeVar("A")


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

    def ask(query: Query[A]) -> A:
        lab.send(query)
        return receive_answer(lab, query)

    def diagnose(node: str, command: Sequence[str]) -> str:
        return ask(RunTool(node, tuple(command))).text

    def tap(port: str) -> int:
        ask(Capture(port))
        (line,) = lab.take_files()
        return line

    net.on_cables = cables_by_faults(topology, ask)
    tool = diagnose if spec.fabric_kind.has_subnet_manager else None
    FabricPrompt(net, spec, lambda: ask(GetPorts()), tap, tool)


if __name__ == "__main__":
    main()
