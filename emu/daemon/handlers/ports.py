"""Lists the switch ports, and takes a snapshot of their counters and queues."""

from __future__ import annotations

from emu.daemon.messages import ListPorts, Ports
from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.ipc.queries import GetPorts


def see(lab: ServedLab, query: GetPorts) -> Answer:
    return lab.shim.ask(query), []


def list_all(lab: ServedLab, query: ListPorts) -> Answer:
    return Ports(lab.session.spec.fabric, rates_bps(lab)), []


def rates_bps(lab: ServedLab) -> dict[str, int]:
    """The rate of every switch port, by name."""
    topology = lab.topology
    return {
        topology.port_name[port]: topology.cable[port].rate_bps for port in topology.switch_ports
    }
