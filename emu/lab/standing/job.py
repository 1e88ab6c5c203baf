"""The job `stand`: a lab that emulates and answers until somebody asks it to end."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from emu.lab.channel import Channel
from emu.lab.command import run
from emu.lab.messages import Failure, Message, Request
from emu.lab.namespace import PRIVATE
from emu.lab.session import JobResult, open_session, start
from emu.lab.standing.desk import Desk
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import Spec, spec_from_json

_HOSTS = Path("/etc/hosts")


def run_standing(request: Request, supervisor: Supervisor) -> JobResult:
    """Its socket is the one open file that the owner hands over."""
    (listener,) = supervisor.handed
    spec = spec_from_json(request.spec)
    _name_hosts(spec)
    session = open_session(request, supervisor, with_rnic=False)
    at_ns = start(session)
    desk = Desk(request, session, supervisor, at_ns)
    _in_background(_welcome, socket.socket(fileno=listener), desk)
    _wait_until(at_ns)
    supervisor.up()
    desk.over.wait()
    return {}, []


def _wait_until(at_ns: int) -> None:
    """A packet that came before the emulated time 0 would wait for it."""
    time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))


def _name_hosts(spec: Spec) -> None:
    """Makes `ping h5` work on every host: the lab has an /etc/hosts of its own."""
    named = "".join(f"{host.ip} {host.name}\n" for host in spec.topology.build().hosts)
    own = PRIVATE / "hosts"
    own.write_text(_HOSTS.read_text() + named)
    run(["mount", "--bind", str(own), str(_HOSTS)])


def _welcome(listener: socket.socket, desk: Desk) -> None:
    while True:
        line, _ = listener.accept()
        _in_background(_serve, Channel(line), desk)


def _serve(channel: Channel, desk: Desk) -> None:
    """One conversation, as long as the other end likes."""
    try:
        while True:
            _answer(channel, desk, channel.receive())
    except (EOFError, OSError):
        channel.close()


def _answer(channel: Channel, desk: Desk, ask: Message) -> None:
    """An error is the answer to what was asked, and no more than that."""
    try:
        answer, files = desk.answer(ask)
    except EOFError:
        raise
    except Exception as error:
        channel.send(Failure.of(error))
        return
    channel.send(answer, files)
    for file in files:
        os.close(file)


def _in_background(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()
