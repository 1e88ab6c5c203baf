"""Runs one of InfiniBand's tools. It queries ibsim, which gets the fabric's present counters."""

from __future__ import annotations

from emu.daemon.messages import RunTool, ToolOutput
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.ipc.queries import GetPorts


def answer(lab: ServedLab, query: RunTool) -> Answer:
    subnet = lab.session.subnet
    if subnet is None:
        raise UsageError(f"{query.command[0]} is for InfiniBand, but this fabric is RoCE")
    lab.check_node(query.node)
    waits = lab.nics.host_waits()
    ports = lab.shim.ask(GetPorts()).ports
    output = subnet.diagnose(query.node, query.command, ports, waits)
    return ToolOutput(output.text, output.code), []
