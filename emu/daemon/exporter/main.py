"""`python -m emu.daemon.exporter.main FD`: the process of a lab that exports its metrics."""

from __future__ import annotations

from emu.daemon.exporter.messages import SetUpExporter
from emu.daemon.exporter.source import Source
from emu.daemon.session import LabSession
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done
from emu.lab.netns import entered
from emu.lab.worker import serve as serve_lab
from emu.report.metrics import FamiliesOf, families
from emu.spec.scenario import Spec, spec_from_json


def main() -> None:
    serve_lab(job)


def job(channel: Channel) -> None:
    """Serves metrics until the lab ends."""
    from emu.daemon.exporter.server import listen, serve  # imports prometheus_client

    setup = channel.expect(SetUpExporter)
    (session,) = channel.take_files()
    spec = spec_from_json(setup.spec)
    listeners = {}
    for node, task in setup.tasks.items():
        with entered(task):
            listeners[node] = listen(node, setup.addresses[node], setup.port)
    channel.send(Done())
    serve(listeners, _families_of(spec, LabSession(Channel.inherited(session))), channel.fileno())


def _families_of(spec: Spec, session: LabSession) -> FamiliesOf:
    """What reads the metrics of a node. `session`: with the lab."""
    topology, framing = spec.topology.build(), spec.fabric_kind.framing
    source = Source(session, topology)
    return lambda node: families(node, source.seen(node), topology, framing)


if __name__ == "__main__":
    main()
