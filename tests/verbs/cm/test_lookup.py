"""Lookups of datagram services: SIDR_REQ and SIDR_REP."""

from __future__ import annotations

import errno

import pytest

from emu.verbs.cm.ip_service import Endpoint, IpHeader, PortSpace, service_id
from emu.verbs.cm.lookup import Lookup
from emu.verbs.cm.messages import SidrStatus
from emu.verbs.cm.path import ANSWER_PS, ConnParam, Event, EventKind
from tests.support.cm_pairs import CLIENT, PORT, SERVER, Network, Pair, Server, kinds


@pytest.fixture
def pair() -> Pair:
    return Pair()


def ask(pair: Pair) -> tuple[Lookup, list[Event]]:
    events: list[Event] = []
    lookup = pair.client.lookup(Network(CLIENT).path_to(SERVER))
    lookup.tell = events.append
    private = IpHeader(Endpoint(CLIENT, 40_000), SERVER).build() + b"who"
    lookup.ask(service_id(PortSpace.UDP, PORT), private, now_ps=pair.now_ps)
    pair.client.changed(lookup)
    return lookup, events


def test_lookup_finds_queue_pair_and_q_key(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.UDP)
    _, events = ask(pair)
    pair.deliver()
    server.lookup.answer(SidrStatus.VALID, ConnParam(b"me", qp_num=0x33, qkey=0x01234567))
    pair.deliver()
    assert server.events[0].param.private_data.rstrip(b"\0") == b"who"
    (event,) = events
    assert (event.kind, event.status) == (EventKind.ESTABLISHED, 0)
    assert (event.param.qp_num, event.param.qkey) == (0x33, 0x01234567)
    assert event.param.private_data.rstrip(b"\0") == b"me"
    assert pair.deadlines.earliest_ps is None


def test_lookup_without_listener_fails(pair: Pair) -> None:
    _, events = ask(pair)
    pair.deliver()
    assert kinds(events) == [EventKind.UNREACHABLE]
    assert events[0].status == SidrStatus.UNSUPPORTED_SERVICE


def test_lookup_at_a_full_listener_fails(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.UDP)
    server.is_full = True
    _, events = ask(pair)
    pair.deliver()
    assert not server.events
    assert events[0].status == SidrStatus.REJECTED


def test_listener_for_connections_gets_no_lookup(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.TCP)
    ask(pair)
    pair.deliver()
    assert not server.events


def test_program_rejects_a_lookup(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.UDP)
    _, events = ask(pair)
    pair.deliver()
    pair.server.forget(server.lookup, now_ps=0)
    pair.deliver()
    assert events[0].status == SidrStatus.REJECTED


def test_lost_lookup_is_asked_again(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.UDP)
    pair.is_cut = True
    ask(pair)
    pair.is_cut = False
    pair.pass_deadline()
    pair.deliver()
    assert kinds(server.events) == [EventKind.CONNECT_REQUEST]


def test_lost_answer_is_sent_again(pair: Pair) -> None:
    server = Server(pair.server, PortSpace.UDP)
    _, events = ask(pair)
    pair.deliver()
    pair.is_cut = True
    server.lookup.answer(SidrStatus.VALID, ConnParam(qp_num=1))
    pair.is_cut = False
    pair.pass_deadline()
    pair.deliver()
    assert kinds(events) == [EventKind.ESTABLISHED]


def test_lookup_gives_up_after_15_retries(pair: Pair) -> None:
    pair.is_cut = True
    _, events = ask(pair)
    while pair.deadlines.earliest_ps is not None:
        pair.pass_deadline()
    assert pair.now_ps == 16 * ANSWER_PS
    assert (events[0].kind, events[0].status) == (EventKind.UNREACHABLE, -errno.ETIMEDOUT)
