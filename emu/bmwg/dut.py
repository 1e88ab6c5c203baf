"""Identification of the device under test, with the parameters of the training draft's table, and
the workload.

The device under test of the drafts is the fabric: switches and the links between them. Here it is
emulated, so it has no vendor, ASIC and firmware; the report says so, and gives the versions of the
emulator and the behaviour that it has instead.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable

import emu
from emu.report.run_view import RunFacts
from emu.spec.traffic.entry import TrafficEntry
from emu.units import format_size, format_time_ns, write_rate, write_size, write_time
from emu.words import counted, listed, shortened
from topologies.graph import Cable

_MOST_HOSTS = 6


def identification(run: RunFacts) -> dict[str, str]:
    """Parameter -> its value, in the order of the draft's table."""
    recording = run.recording
    return {
        "Switch vendor and model": f"none: emulated by emu {emu.__version__}",
        "Switch ASIC": "none: a model; the page and the JSON document have its settings",
        "NOS version": f"none; forwarding plane {recording.plane}, marker {recording.marker}",
        "Fabric": recording.fabric_kind.title,
        "Topology": _topology(run),
        "Port speed": _each(write_rate(cable.rate_bps) for cable in run.topology.cables),
        "Buffer architecture": _buffers(run),
        "Optics and cables": _cables(run.topology.cables),
        "NIC vendor and model": f"none: {counted(len(run.topology.host), 'emulated RDMA NIC')}",
        "NIC firmware": "none",
        "Host configuration": f"stack {run.spec.hosts.stack}; collectives by emu, no CCL or driver",
        "Clock": _clock(run),
    }


def workload(run: RunFacts) -> list[dict[str, str]]:
    """A row for each entry of `traffic:`."""
    return [_entry(run, entry) for entry in run.spec.traffic]


def _entry(run: RunFacts, entry: TrafficEntry) -> dict[str, str]:
    flows = run.traffic.get(entry.name, ())
    senders, *receivers = (shortened(list(hosts), _MOST_HOSTS) for hosts in entry.hosts.values())
    return {
        "traffic": entry.name,
        "pattern": entry.pattern,
        "hosts": " to ".join([senders, *receivers]),
        "flows": f"{len(flows):,}",
        "bytes": format_size(sum(flow.bytes for flow in flows)),
        "priority": "NIC's" if entry.priority is None else str(entry.priority),
        "start": format_time_ns(entry.start_ns),
        "transport": "tcp" if run.spec.by_tcp(entry) else "rdma",
    }


def _topology(run: RunFacts) -> str:
    topology = run.topology
    roles = Counter(switch.role for switch in topology.switches)
    switches = listed([f"{count} {role}" for role, count in roles.items()])
    hosts, cables = counted(len(topology.host), "host"), counted(len(topology.cables), "cable")
    return f"{run.spec.topology.kind}: {switches} switches, {hosts}, {cables}"


def _buffers(run: RunFacts) -> str:
    switches = [run.spec.switch(name) for name in run.topology.switch]
    if run.uses_credits:
        sizes = _each(
            f"{write_size(own.credits.buffer_bytes)} for each of {own.credits.vls} VLs of a port"
            for own in switches
        )
        return f"receive buffers of virtual lanes: {sizes}"
    return f"shared: {_each(f'{write_size(own.buffer_bytes)} each' for own in switches)}"


def _cables(cables: Iterable[Cable]) -> str:
    delays = _each(write_time(cable.delay_ps) for cable in cables)
    return f"no optics; one-way delay of a cable {delays}"


def _clock(run: RunFacts) -> str:
    recording = run.recording
    slow = "" if recording.is_exact else f", slowdown {recording.slowdown:g}"
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{recording.clock}{slow}; on {machine}"


def _each(values: Iterable[str]) -> str:
    """`100Gbit (8), 400Gbit (4)`: each value with how often there is it; alone, without."""
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count})" for value, count in counts.items())
