"""The job `ServeLab`: a lab that emulates and answers its clients until one of them ends it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from emu.daemon.agents import need, start_agents
from emu.daemon.handlers import HANDLERS
from emu.daemon.messages import LabEnded
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import EmuError, FabricError, RemoteProtocolError
from emu.lab.command import run
from emu.lab.host_names import host_lines
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Done, Failure
from emu.lab.lab_plan import LabRequest, has_management, out_of_band_network
from emu.lab.namespace import PRIVATE
from emu.lab.out_of_band.files import write_files
from emu.lab.session import JobResult, Session, open_session, start
from emu.lab.supervisor import Supervisor
from emu.lab.version import version
from emu.spec.scenario import spec_from_json

_HOSTS = Path("/etc/hosts")
_SECONDS_TO_FINISH_AN_ANSWER = 0.2
_SECONDS_BETWEEN_TRIES = 0.1


def serve_lab(job: ServeLab, supervisor: Supervisor) -> JobResult:
    """Builds the lab and answers clients. The owner's only open file is the listening socket."""
    (listener,) = supervisor.inherited_fds
    spec = spec_from_json(job.spec)
    request = LabRequest.interactive_lab(spec, job.out, job.slowdown, ip=job.ip)
    if job.exact:
        request = LabRequest.interactive_exact_lab(spec, job.out)
    request = replace(request, stays_up=True)
    _prepare_management(request)
    _name_hosts(request)
    session = open_session(request, supervisor)
    at_ns = start(session)
    lab = ServedLab(session, supervisor, job.slowdown, at_ns)
    sessions = Sessions(partial(answer_from, lab), supervisor.wait_for_the_end)
    supervisor.on_death.append(
        lambda reason: sessions.end(f"the lab {spec.name} has ended: {reason}")
    )
    _start_agents(session, supervisor, sessions)
    _in_background(_accept_clients, socket.socket(fileno=listener), sessions)
    _wait_until(at_ns)
    supervisor.up()
    lab.over.wait()
    return Done(), []


def answer_from(lab: ServedLab, query: Message) -> Answer:
    """The answer to a client's query. Raises UsageError if the lab cannot do what it requests."""
    handler = HANDLERS.get(type(query))
    if handler is None:
        raise RemoteProtocolError(f"{type(query).__name__} is not a query to a lab")
    return handler(lab, query)


def _wait_until(at_ns: int) -> None:
    """Waits until the emulated time 0: a packet sent before would be delayed until then."""
    time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))


def _name_hosts(request: LabRequest) -> None:
    """Gives the lab an /etc/hosts, so that `ping h5` works."""
    topology = request.spec.topology.build()
    lines = host_lines(
        topology,
        is_ethernet=request.spec.fabric_kind.is_ethernet,
        management=has_management(request, topology),
    )
    own = PRIVATE / "hosts"
    own.write_text(_HOSTS.read_text() + "".join(f"{line}\n" for line in lines))
    run(["mount", "-n", "--bind", str(own), str(_HOSTS)])


def _prepare_management(request: LabRequest) -> None:
    """Writes the files of the management network, among them its /etc/hosts, which begins with the
    machine's. Raises HostError if the machine lacks something for it."""
    spec = request.spec
    network = out_of_band_network(request, spec.topology.build())
    if network is not None:
        need(network.settings)
        write_files(network, spec.name)


def _start_agents(session: Session, supervisor: Supervisor, sessions: Sessions) -> None:
    """Starts the processes of the management network, whose sessions with the lab are those of
    clients."""
    network = session.plan.out_of_band
    if network is not None:
        start_agents(session, network, supervisor, partial(_new_session, sessions))


def _new_session(sessions: Sessions) -> socket.socket:
    """The far end of a new session."""
    near, far = channel_pair()
    _in_background(sessions.hold, near)
    return far


def _accept_clients(listener: socket.socket, sessions: Sessions) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # too many open files: wait until a session has ended
            time.sleep(_SECONDS_BETWEEN_TRIES)
            continue
        channel = Channel(connection)
        try:
            _in_background(sessions.hold, channel)
        except RuntimeError as error:  # no thread can be started
            with suppress(EOFError, OSError):
                channel.send(Failure.of(error))
            channel.close()


class Sessions:
    """The open sessions with clients. When the lab ends, each client gets the reason."""

    def __init__(
        self, answer: Callable[[Message], Answer], wait_for_the_end: Callable[[], None]
    ) -> None:
        """`wait_for_the_end` is called when a handler finds that a process of the lab has ended."""
        self._handle = answer
        self._wait_for_the_end = wait_for_the_end
        self._sending: dict[Channel, threading.Lock] = {}

    def hold(self, channel: Channel) -> None:
        """Answers one client until it closes the session."""
        sending = self._sending[channel] = threading.Lock()
        try:
            with suppress(EOFError, OSError):
                while True:
                    answer, files = self._answer_next(channel)
                    try:
                        with sending:
                            channel.send(answer, files)
                    finally:
                        _close(files)
        finally:
            del self._sending[channel]
            channel.close()

    def _answer_next(self, channel: Channel) -> tuple[Message, list[int]]:
        """Receives a query and returns the answer. Malformed messages are answered, too. Queries
        have no open files; unexpected ones are closed."""
        try:
            query = channel.receive()
        except RemoteProtocolError as error:
            return Failure.of(FabricError(f"this lab runs emu {version()}: {error}")), []
        except EmuError as error:
            return Failure.of(error), []
        finally:
            _close(channel.take_files())
        return self._answer(query)

    def _answer(self, query: Message) -> tuple[Message, list[int]]:
        """The answer to a query. An error is an answer, too: the session goes on."""
        try:
            return self._handle(query)
        except EOFError:
            self._wait_for_the_end()
            raise
        except Exception as error:
            return Failure.of(error), []

    def end(self, reason: str) -> None:
        """Sends the reason to every client, also to those that wait for another answer.

        A client that reads nothing misses the reason: it must not delay the lab's end.
        """
        for channel, sending in list(self._sending.items()):
            if sending.acquire(timeout=_SECONDS_TO_FINISH_AN_ANSWER):
                with suppress(EOFError, OSError):
                    channel.send_at_once(LabEnded(reason))


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)


def _in_background(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()
