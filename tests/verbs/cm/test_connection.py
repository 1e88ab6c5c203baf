"""Connections of two managers: requested, accepted, refused, ended, and what losses do."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from emu.errors import LocalProtocolError
from emu.verbs.cm.connection import State
from emu.verbs.cm.messages import Dreq, Reason, Rej, Req
from emu.verbs.cm.path import ANSWER_PS, TIMEWAIT_PS, ConnParam, EventKind
from tests.support.cm_pairs import CLIENT, PORT, SERVER, Pair, Server, kinds


@pytest.fixture
def pair() -> Pair:
    return Pair()


# ---- connecting --------------------------------------------------------------------


def test_request_is_accepted(pair: Pair) -> None:
    active, events, passive, requests = pair.connected()
    assert pair.kinds_seen() == ["REQ", "REP", "RTU"]
    assert kinds(events) == [EventKind.CONNECT_RESPONSE]
    assert kinds(requests) == [EventKind.CONNECT_REQUEST, EventKind.ESTABLISHED]
    assert active.state is passive.state is State.ESTABLISHED
    assert pair.deadlines.earliest_ps is None


def test_both_ends_agree_on_their_queue_pairs(pair: Pair) -> None:
    active, _, passive, _ = pair.connected()
    own, far = active.agreed, passive.agreed
    assert (own.remote_qpn, far.remote_qpn) == (0x22, 0x11)
    assert (own.psn, own.remote_psn) == (far.remote_psn, far.psn)
    assert (own.path.address, far.path.address) == (SERVER, CLIENT)
    assert (far.responder_resources, far.initiator_depth) == (5, 3)
    assert (own.responder_resources, own.initiator_depth) == (5, 3)


def test_request_tells_who_asks(pair: Pair) -> None:
    server = Server(pair.server)
    pair.connect()
    pair.deliver()
    (event,) = server.events
    assert event.source is not None
    assert event.destination is not None
    assert (event.source.ip, event.source.port) == (SERVER, PORT)
    assert (event.destination.ip, event.destination.port) == (CLIENT, 40_000)
    assert event.param.private_data.rstrip(b"\0") == b"hello"
    assert len(event.param.private_data) == 56
    assert (event.param.responder_resources, event.param.initiator_depth) == (5, 3)
    assert event.param.qp_num == 0x11


def test_agreement_needs_the_other_end(pair: Pair) -> None:
    active, _ = pair.connect()
    with pytest.raises(LocalProtocolError, match="not known yet"):
        _ = active.agreed


def test_request_without_listener_is_rejected(pair: Pair) -> None:
    _, events = pair.connect()
    pair.deliver()
    assert kinds(events) == [EventKind.REJECTED]
    assert events[0].status == Reason.INVALID_SERVICE_ID


def test_request_to_a_full_listener_is_rejected(pair: Pair) -> None:
    """As Linux does when so many requests wait as rdma_listen's backlog allows."""
    server = Server(pair.server)
    server.is_full = True
    _, events = pair.connect()
    pair.deliver()
    assert not server.events
    assert [(one.kind, one.status) for one in events] == [(EventKind.REJECTED, Reason.CONSUMER)]


def test_listener_of_another_port_gets_nothing(pair: Pair) -> None:
    server = Server(pair.server)
    _, events = pair.connect(PORT + 1)
    pair.deliver()
    assert not server.events
    assert kinds(events) == [EventKind.REJECTED]


def test_program_rejects_with_private_data(pair: Pair) -> None:
    server = Server(pair.server)
    active, events = pair.connect()
    pair.deliver()
    server.connection.reject(b"no")
    pair.deliver()
    assert events[0].status == Reason.CONSUMER
    assert events[0].param.private_data.rstrip(b"\0") == b"no"
    assert active.state is State.IDLE


def test_client_that_fails_after_the_reply_rejects_it(pair: Pair) -> None:
    server = Server(pair.server)
    active, _ = pair.connect()
    pair.deliver()
    server.connection.accept(ConnParam(qp_num=1), now_ps=0)
    pair.deliver()
    active.reject(b"")
    pair.deliver()
    assert kinds(server.events) == [EventKind.CONNECT_REQUEST, EventKind.REJECTED]


def test_accepting_twice_is_refused(pair: Pair) -> None:
    _, _, passive, _ = pair.connected()
    with pytest.raises(LocalProtocolError, match="in ESTABLISHED, not in REQ_RCVD"):
        passive.accept(ConnParam(), now_ps=0)


# ---- losses -------------------------------------------------------------------------


def test_lost_request_is_sent_again(pair: Pair) -> None:
    server = Server(pair.server)
    pair.is_cut = True
    pair.connect()
    pair.is_cut = False
    pair.pass_deadline()
    pair.deliver()
    assert pair.now_ps == ANSWER_PS
    assert kinds(server.events) == [EventKind.CONNECT_REQUEST]


def test_client_gives_up_after_15_retries(pair: Pair) -> None:
    pair.is_cut = True
    active, events = pair.connect()
    while pair.deadlines.earliest_ps is not None:
        pair.pass_deadline()
    assert pair.now_ps == 16 * ANSWER_PS
    assert sum(isinstance(message, Req) for message in pair.seen) == 16
    assert (events[0].kind, events[0].status) == (EventKind.UNREACHABLE, -errno.ETIMEDOUT)
    assert active.state is State.IDLE


def test_request_that_comes_again_is_no_new_one(pair: Pair) -> None:
    server = Server(pair.server)
    pair.connect()
    pair.deliver()
    pair.pass_deadline()
    pair.deliver()
    assert kinds(server.events) == [EventKind.CONNECT_REQUEST]
    assert pair.kinds_seen() == ["REQ", "REQ"]


def test_lost_reply_is_sent_again(pair: Pair) -> None:
    server = Server(pair.server)
    _, events = pair.connect()
    pair.deliver()
    pair.is_cut = True
    server.connection.accept(ConnParam(qp_num=1), now_ps=0)
    pair.server.changed(server.connection)
    pair.is_cut = False
    pair.pass_deadline()
    pair.deliver()
    assert kinds(events) == [EventKind.CONNECT_RESPONSE]


def test_lost_ready_to_use_is_sent_again(pair: Pair) -> None:
    server = Server(pair.server)
    active, _ = pair.connect()
    pair.deliver()
    server.connection.accept(ConnParam(qp_num=1), now_ps=0)
    pair.server.changed(server.connection)
    pair.deliver()
    pair.is_cut = True
    active.establish()
    pair.client.changed(active)
    pair.is_cut = False
    pair.pass_deadline()
    pair.deliver()
    assert kinds(server.events)[-1] is EventKind.ESTABLISHED
    assert pair.kinds_seen() == ["REQ", "REP", "RTU", "REP", "RTU"]


# ---- the end --------------------------------------------------------------------------


def test_disconnect_is_answered_by_the_other_program(pair: Pair) -> None:
    active, events, passive, requests = pair.connected()
    active.disconnect(now_ps=0)
    pair.client.changed(active)
    pair.deliver()
    assert kinds(requests)[-1] is EventKind.DISCONNECTED
    assert kinds(events)[-1] is EventKind.CONNECT_RESPONSE
    passive.disconnect(now_ps=0)
    pair.server.changed(passive)
    pair.deliver()
    assert kinds(events)[-1] is EventKind.DISCONNECTED
    assert pair.kinds_seen()[3:] == ["DREQ", "DREP"]
    assert active.state is passive.state is State.TIMEWAIT


def test_time_wait_ends_with_an_event(pair: Pair) -> None:
    active, events, passive, requests = pair.connected()
    active.disconnect(now_ps=0)
    pair.deliver()
    passive.disconnect(now_ps=0)
    pair.deliver()
    pair.server.changed(passive)
    pair.pass_deadline()
    assert pair.now_ps == TIMEWAIT_PS
    assert kinds(events)[-1] is kinds(requests)[-1] is EventKind.TIMEWAIT_EXIT


def test_both_ends_disconnect_at_once(pair: Pair) -> None:
    active, events, passive, requests = pair.connected()
    active.disconnect(now_ps=0)
    passive.disconnect(now_ps=0)
    pair.deliver()
    assert kinds(events)[-1] is kinds(requests)[-1] is EventKind.DISCONNECTED
    assert active.state is passive.state is State.TIMEWAIT


def test_second_disconnect_changes_nothing(pair: Pair) -> None:
    active, _, _, _ = pair.connected()
    active.disconnect(now_ps=0)
    active.disconnect(now_ps=0)
    assert sum(isinstance(message, Dreq) for message in pair.seen) == 1


def test_end_without_answer_is_an_end(pair: Pair) -> None:
    active, events, _, _ = pair.connected()
    pair.is_cut = True
    active.disconnect(now_ps=0)
    pair.client.changed(active)
    while active.state is State.DREQ_SENT:
        pair.pass_deadline()
    assert (events[-1].kind, events[-1].status) == (EventKind.DISCONNECTED, -errno.ETIMEDOUT)


# ---- programs that end ------------------------------------------------------------------


def test_program_that_ends_disconnects(pair: Pair) -> None:
    active, _, passive, requests = pair.connected()
    pair.client.forget(active, now_ps=0)
    pair.deliver()
    assert kinds(requests)[-1] is EventKind.DISCONNECTED
    pair.server.forget(passive, now_ps=0)
    pair.deliver()
    assert pair.kinds_seen()[3:] == ["DREQ", "DREP"]
    assert pair.deadlines.earliest_ps is None


def test_program_that_ends_before_its_answer_rejects(pair: Pair) -> None:
    server = Server(pair.server)
    _, events = pair.connect()
    pair.deliver()
    pair.server.forget(server.connection, now_ps=0)
    pair.deliver()
    assert (events[-1].kind, events[-1].status) == (EventKind.REJECTED, Reason.CONSUMER)


def test_client_that_ends_withdraws_its_request(pair: Pair) -> None:
    server = Server(pair.server)
    active, _ = pair.connect()
    pair.deliver()
    pair.client.forget(active, now_ps=0)
    pair.deliver()
    last = pair.seen[-1]
    assert isinstance(last, Rej)
    assert last.reason == Reason.TIMEOUT
    assert kinds(server.events) == [EventKind.CONNECT_REQUEST, EventKind.REJECTED]


def test_disconnect_of_a_forgotten_connection_is_answered(pair: Pair) -> None:
    active, events, passive, _ = pair.connected()
    pair.is_cut = True
    pair.server.forget(passive, now_ps=0)
    while pair.deadlines.earliest_ps is not None:
        pair.pass_deadline()  # the server gives up, and forgets
    pair.is_cut = False
    active.disconnect(now_ps=pair.now_ps)
    pair.deliver()
    assert kinds(events)[-1] is EventKind.DISCONNECTED


@pytest.mark.parametrize("change", [{"remote_id": 99}, {"local_id": 99}], ids=str)
def test_messages_of_others_are_ignored(pair: Pair, change: dict[str, Any]) -> None:
    from dataclasses import replace

    from emu.verbs.cm.messages import build

    active, _, passive, requests = pair.connected()
    ids = Dreq(active.local_id, passive.local_id, 0x22)
    pair.server.receive(CLIENT, build(replace(ids, **change), 1), now_ps=0)
    assert kinds(requests)[-1] is EventKind.ESTABLISHED


def test_messages_from_another_host_are_ignored(pair: Pair) -> None:
    from emu.verbs.cm.messages import build

    active, _, passive, requests = pair.connected()
    request = Dreq(active.local_id, passive.local_id, 0x22)
    pair.server.receive(SERVER, build(request, 1), now_ps=0)
    assert kinds(requests)[-1] is EventKind.ESTABLISHED


@pytest.mark.parametrize("packet", [b"", b"x" * 256, bytes(300)], ids=len)
def test_nonsense_is_ignored(pair: Pair, packet: bytes) -> None:
    pair.server.receive(CLIENT, packet, now_ps=0)
    assert not pair.seen
