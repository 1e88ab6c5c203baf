"""Sends the state of the lab and of its traffic."""

from __future__ import annotations

import time

from emu.daemon.messages import GetStatus, Status
from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.session import notes_of


def answer(lab: ServedLab, query: GetStatus) -> Answer:
    return status_of(lab), []


def status_of(lab: ServedLab) -> Status:
    session = lab.session
    programs = lab.nics.programs()
    routing = session.subnet or session.routing
    return Status(
        name=session.spec.name,
        spec=session.spec.to_json(),
        clock=lab.clock.clock.name,
        time=lab.clock.now(),
        slowdown=lab.slowdown,
        plane=session.plane,
        marker=session.marker,
        notes=notes_of(session),
        ip=session.has_ip,
        up_seconds=time.monotonic() - lab.began,
        traffic=lab.traffic.status,
        programs=programs.by_host,
        stopped_programs=programs.stopped,
        sweeps=tuple(session.subnet.sweeps) if session.subnet else (),
        links=routing.links.entries if routing else (),
    )
