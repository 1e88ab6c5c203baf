"""The scale-up fabric: the GPUs of each server around a switch, like NVLink and NVSwitch.

     nvswitch1             nvswitch2
    ╱  │  │  ╲            ╱  │  │  ╲          scale-up: one cable from every GPU
  h1  h2  h3  h4        h5  h6  h7  h8
   │   │   │   │         │   │   │   │        scale-out: its NIC, in the fabric's own topology

A host is a GPU with the nearest NIC: GPU i of a server uses NIC i, which is on rail i of a rail
fabric. A server is a number of consecutive hosts. All links of a GPU are one cable with their total
rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from topologies.graph import Cable, Host, Port, Switch, Topology, Wire

PORT = 1
"""The number of a host's port to the scale-up fabric; its NIC has port 0."""


def scale_up(hosts: Sequence[Host], gpus: int, wire: Wire) -> Topology:
    """One switch for each `gpus` consecutive hosts; the last server may have fewer."""
    switches, cables = [], []
    for place, host in enumerate(hosts):
        server, gpu = divmod(place, gpus)
        if gpu == 0:
            switches.append(Switch(f"nvswitch{server + 1}", server + 1, "nvswitch"))
        here, there = Port(switches[-1].name, gpu + 1, _mac(server, gpu)), _port(host)
        cables.append(Cable(here, there, *wire))
    return Topology(tuple(hosts), tuple(switches), tuple(cables))


def _port(host: Host) -> Port:
    return Port(host.name, PORT, (b"\x02\x02" + host.ip.packed).hex(":"))


def _mac(server: int, gpu: int) -> str:
    """An address that only distinguishes the port; no packet is sent to it."""
    return (b"\x02\x03" + (server + 1).to_bytes(2, "big") + (gpu + 1).to_bytes(2, "big")).hex(":")
