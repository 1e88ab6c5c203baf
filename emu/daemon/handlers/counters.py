"""Sends open files of the counters: a snapshot without faults and without the state of traffic, so
that no other process of the lab is asked."""

from __future__ import annotations

import os
from contextlib import ExitStack

from emu.daemon.exporter.messages import Counters, GetCounters
from emu.daemon.served_lab import Answer, ServedLab


def answer(lab: ServedLab, query: GetCounters) -> Answer:
    latest = lab.nics.copy_counters(lab.traffic.latest)
    with ExitStack() as on_error:
        for file in latest.files:
            on_error.callback(os.close, file)
        ports = os.dup(lab.counters_file)
        on_error.pop_all()
    hosts, others = latest.files[:1], latest.files[1:]
    for file in others:
        os.close(file)
    layout = lab.session.shim_ready.counters
    assert layout is not None
    return Counters(layout, latest.hosts, _down(lab)), [ports, *hosts]


def _down(lab: ServedLab) -> tuple[str, ...]:
    """The ports at both ends of cables that are down, as far as the lab's routing knows."""
    routing = lab.session.subnet or lab.session.routing
    changes = routing.links.entries if routing else ()
    topology = lab.topology
    ends = [topology.port_named[name] for name in (changes[-1].down if changes else ())]
    return tuple(topology.port_name[end] for port in ends for end in (port, topology.peer[port]))
