"""`python -m emu.daemon.syslog.main FD`: the process of a lab that sends syslog messages."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NoReturn

from emu.daemon.client import LabIsGone
from emu.daemon.client_snapshot import take_snapshot
from emu.daemon.event_stream import events_after
from emu.daemon.session import LabSession
from emu.daemon.syslog.messages import SetUpSyslog
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done
from emu.lab.netns import entered
from emu.lab.worker import serve
from emu.report.syslog import message_of, nodes_of
from emu.spec.management import SYSLOG_PORT
from emu.spec.scenario import spec_from_json
from topologies.graph import Topology

_SECONDS_BETWEEN_TRIES = 1.0


def main() -> None:
    serve(job)


def job(channel: Channel) -> None:
    """Sends messages until the lab ends."""
    setup = channel.expect(SetUpSyslog)
    (session,) = channel.take_files()
    lab = LabSession(Channel.inherited(session))
    topology = spec_from_json(setup.spec).topology.build()
    lines = {node: _line(task) for node, task in setup.tasks.items()}
    channel.send(Done())
    while True:
        try:
            _report(lab, topology, lines, setup.collector)
        except LabIsGone:
            return
        except FabricError:  # a process of the lab did not answer in time
            time.sleep(_SECONDS_BETWEEN_TRIES)


def _report(
    lab: LabSession, topology: Topology, lines: Mapping[str, socket.socket], collector: str
) -> NoReturn:
    """Sends a message for each event from now on. Raises FabricError."""
    for events in events_after(take_snapshot(lab), lab, topology):
        for event in events:
            for node in nodes_of(event, topology):
                message = message_of(event, node, datetime.now(UTC))
                with suppress(OSError):  # the management network is down, as on hardware
                    lines[node].sendto(message, (collector, SYSLOG_PORT))
    raise AssertionError("events end with the lab")


def _line(task: int) -> socket.socket:
    with entered(task):
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


if __name__ == "__main__":
    main()
