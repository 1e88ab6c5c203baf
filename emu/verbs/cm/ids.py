"""The communication identifiers and event channels of one program: the calls of librdmacm.

An event stays here until the program asks for it. The pipe of its channel gets a byte, so that the
program can wait for events with read or poll.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from emu._core import ffi, lib
from emu.verbs.cm.connection import Connection
from emu.verbs.cm.ip_service import HEADER_BYTES, Endpoint, IpHeader, PortSpace, service_id
from emu.verbs.cm.lookup import Lookup
from emu.verbs.cm.manager import Manager, Talk
from emu.verbs.cm.messages import Rej, Rep, Req, SidrRep, SidrReq, SidrStatus, Transport
from emu.verbs.cm.network import HostNetwork
from emu.verbs.cm.path import ConnParam, Event, EventKind, Path, Tell
from emu.verbs.objects import Command, Refused

_LOOPBACK = 127
_MOST_BACKLOG = 1024
"""Of requests that wait at a listener: Linux' usual limit (max_backlog of rdma_ucm)."""
_MOST_PRIVATE = {
    (lib.UVERBS_CM_CONNECT, PortSpace.TCP): Req.private_bytes - HEADER_BYTES,
    (lib.UVERBS_CM_CONNECT, PortSpace.UDP): SidrReq.private_bytes - HEADER_BYTES,
    (lib.UVERBS_CM_ACCEPT, PortSpace.TCP): Rep.private_bytes,
    (lib.UVERBS_CM_ACCEPT, PortSpace.UDP): SidrRep.private_bytes,
    (lib.UVERBS_CM_REJECT, PortSpace.TCP): Rej.private_bytes,
    (lib.UVERBS_CM_REJECT, PortSpace.UDP): SidrRep.private_bytes,
}
"""Bytes of a program's own private data (rdma_connect(3), rdma_accept(3), rdma_reject(3))."""


@dataclass(frozen=True)
class _Pending:
    """An event that the program has not fetched."""

    id: Identifier
    event: Event
    listener: Identifier | None = None


class _Channel:
    """An event channel: a pipe, and what it announces."""

    def __init__(self, file: int, client: Any) -> None:
        """`file`: the pipe's end for writing."""
        self._writing, self._client = os.dup(file), client
        self._reading = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_NONBLOCK)
        self._pending: deque[_Pending] = deque()

    def put(self, pending: _Pending) -> None:
        self._pending.append(pending)
        lib.uverbs_have_news(self._client)
        with suppress(OSError):  # it is full of such bytes, or the program has closed it
            os.write(self._writing, b"\0")

    def next(self) -> _Pending | None:
        """The program has read an announcement; None: of an event that was taken out since."""
        return self._pending.popleft() if self._pending else None

    def requests_for(self, listener: Identifier) -> list[Identifier]:
        return [one.id for one in self._pending if one.listener is listener]

    def take_out(self, leaves: Callable[[_Pending], bool]) -> list[_Pending]:
        """Takes out events, and their announcements: a program that finds one waits for the
        event."""
        taken = [one for one in self._pending if leaves(one)]
        self._pending = deque(one for one in self._pending if not leaves(one))
        if taken:
            with suppress(BlockingIOError):  # threads of the program have read them
                os.read(self._reading, len(taken))
        return taken

    def close(self) -> None:
        os.close(self._writing)
        os.close(self._reading)


class Identifier:
    """A communication identifier (struct rdma_cm_id)."""

    def __init__(self, owner: ProgramIds, handle: int, channel: _Channel, space: PortSpace) -> None:
        self._owner = owner
        self.handle, self.channel, self.space = handle, channel, space
        self.source = Endpoint()
        self.destination = Endpoint()
        self.path: Path | None = None
        self.talk: Talk | None = None
        self.is_bound = False
        self.backlog = _MOST_BACKLOG

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait that another one is rejected."""
        return len(self.channel.requests_for(self)) >= self.backlog

    def requested(self, talk: Talk) -> Tell:
        """Makes the identifier of a request that has come."""
        made = self._owner.add(self.channel, self.space)
        made.talk, made.path = talk, talk.path
        return partial(made._tell_request, self)

    def _tell_request(self, listener: Identifier, event: Event) -> None:
        assert self.talk
        assert event.source
        assert event.destination
        self.source, self.destination = event.source, event.destination
        self.talk.tell = self.tell
        listener.channel.put(_Pending(self, event, listener))

    def tell(self, event: Event) -> None:
        self.channel.put(_Pending(self, event))

    @property
    def connection(self) -> Connection:
        """Raises Refused when it has none."""
        if not isinstance(self.talk, Connection):
            raise Refused(errno.EINVAL, "the identifier has no connection")
        return self.talk

    @property
    def way(self) -> Path:
        """Raises Refused before the address is resolved."""
        if self.path is None:
            raise Refused(errno.EINVAL, "resolve the address first")
        return self.path


class ProgramIds:
    """Those of one program."""

    def __init__(
        self, network: HostNetwork, manager: Manager, client: Any, now_ps: Callable[[], int]
    ) -> None:
        """`client`: a `struct uverbs_client *`."""
        self._network, self._manager = network, manager
        self._client, self._now_ps = client, now_ps
        self._ids: dict[int, Identifier] = {}
        self._channels: dict[int, _Channel] = {}
        self._last = 0

    def commands(self) -> dict[int, Command]:
        """What carries out each command of a program."""
        return {
            lib.UVERBS_CM_CREATE_CHANNEL: self._create_channel,
            lib.UVERBS_CM_DESTROY_CHANNEL: self._destroy_channel,
            lib.UVERBS_CM_GET_EVENT: self._get_event,
            lib.UVERBS_CM_CREATE_ID: self._create_id,
            lib.UVERBS_CM_DESTROY_ID: self._destroy_id,
            lib.UVERBS_CM_MIGRATE_ID: self._migrate_id,
            lib.UVERBS_CM_BIND_ADDR: self._bind_addr,
            lib.UVERBS_CM_RESOLVE_ADDR: self._resolve_addr,
            lib.UVERBS_CM_RESOLVE_ROUTE: self._resolve_route,
            lib.UVERBS_CM_LISTEN: self._listen,
            lib.UVERBS_CM_CONNECT: self._connect,
            lib.UVERBS_CM_ACCEPT: self._accept,
            lib.UVERBS_CM_REJECT: self._reject,
            lib.UVERBS_CM_ESTABLISH: self._establish,
            lib.UVERBS_CM_DISCONNECT: self._disconnect,
            lib.UVERBS_CM_QUERY_QP: self._query_qp,
        }

    def close(self) -> None:
        """The program has ended: its connections end, too."""
        for id_ in list(self._ids.values()):
            self._end(id_)
        for channel in self._channels.values():
            channel.close()

    def add(self, channel: _Channel, space: PortSpace) -> Identifier:
        """A new identifier."""
        handle = self._next()
        self._ids[handle] = Identifier(self, handle, channel, space)
        return self._ids[handle]

    # ---- handles ---------------------------------------------------------------------

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _id(self, request: Any) -> Identifier:
        if request.handle not in self._ids:
            raise Refused(errno.EINVAL, f"handle {request.handle} is no identifier")
        return self._ids[request.handle]

    def _channel(self, handle: int) -> _Channel:
        if handle not in self._channels:
            raise Refused(errno.EINVAL, f"handle {handle} is no event channel")
        return self._channels[handle]

    # ---- event channels ----------------------------------------------------------------

    def _create_channel(self, request: Any, files: Sequence[int], reply: Any) -> None:
        if len(files) != 1 or not stat.S_ISFIFO(os.fstat(files[0]).st_mode):
            raise Refused(errno.EINVAL, "an event channel needs one end of a pipe")
        os.set_blocking(files[0], False)
        reply.handle = self._next()
        self._channels[reply.handle] = _Channel(files[0], self._client)

    def _destroy_channel(self, request: Any, files: Sequence[int], reply: Any) -> None:
        channel = self._channel(request.handle)
        if any(id_.channel is channel for id_ in self._ids.values()):
            raise Refused(errno.EBUSY, "identifiers still use the event channel")
        del self._channels[request.handle]
        channel.close()

    def _get_event(self, request: Any, files: Sequence[int], reply: Any) -> None:
        pending = self._channel(request.handle).next()
        if pending is None:
            raise Refused(errno.EAGAIN, "there is no event")
        event = reply.cm.event
        event.kind, event.status = pending.event.kind, pending.event.status
        event.id = pending.id.handle
        event.listener = pending.listener.handle if pending.listener else 0
        _fill_param(event.param, pending.event.param)
        _fill_state(reply.cm.state, pending.id)

    # ---- identifiers ---------------------------------------------------------------------

    def _create_id(self, request: Any, files: Sequence[int], reply: Any) -> None:
        wanted = request.cm
        if wanted.port_space not in set(PortSpace):
            raise Refused(errno.EOPNOTSUPP, "the port spaces here are RDMA_PS_TCP and RDMA_PS_UDP")
        channel = self._channel(wanted.channel)
        reply.handle = self.add(channel, PortSpace(wanted.port_space)).handle

    def _destroy_id(self, request: Any, files: Sequence[int], reply: Any) -> None:
        self._end(self._id(request))

    def _end(self, id_: Identifier) -> None:
        if self._ids.pop(id_.handle, None) is None:
            return
        requests = id_.channel.requests_for(id_)
        ended = {id_, *requests}
        id_.channel.take_out(lambda one: one.id in ended)
        if id_.is_bound:
            self._manager.ports.release(id_, id_.space, id_.source.port)
        if id_.talk:
            self._manager.forget(id_.talk, now_ps=self._now_ps())
        for one in requests:
            self._end(one)

    def _migrate_id(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_, channel = self._id(request), self._channel(request.cm.channel)
        if channel is not id_.channel:
            for one in id_.channel.take_out(lambda one: one.id is id_ and one.listener is None):
                channel.put(one)
        id_.channel = channel

    # ---- addresses -----------------------------------------------------------------------

    def _bind_addr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_ = self._id(request)
        self._bind(id_, _endpoint(request.cm.source), shares=request.cm.reuses_address)
        _fill_state(reply.cm.state, id_)

    def _bind(self, id_: Identifier, wanted: Endpoint, *, shares: bool) -> None:
        if id_.is_bound:
            raise Refused(errno.EINVAL, f"the identifier is bound to {id_.source} already")
        ip = self._own(wanted.ip)
        port = self._manager.ports.take(id_, id_.space, wanted.port, shares=shares)
        id_.source, id_.is_bound = Endpoint(ip, port), True

    def _own(self, ip: int) -> int:
        """The host's address by which the local address `ip` is known to others; 0: any."""
        known = self._network.ip if ip >> 24 == _LOOPBACK else self._network.fabric_ip(ip)
        if known not in (0, self._network.ip):
            raise Refused(errno.ENODEV, f"{Endpoint(ip)}: no RDMA device of this host has that")
        return known

    def _resolve_addr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_, wanted = self._id(request), request.cm
        if id_.talk or id_.path:
            raise Refused(errno.EINVAL, "the identifier has a destination already")
        if not id_.is_bound:
            self._bind(id_, _endpoint(wanted.source), shares=wanted.reuses_address)
        id_.source = Endpoint(self._network.ip, id_.source.port)
        far = _endpoint(wanted.destination)
        is_own = far.ip >> 24 == _LOOPBACK or not far.ip
        ip = self._network.ip if is_own else self._network.fabric_ip(far.ip)
        id_.destination = Endpoint(ip, far.port)
        id_.path = self._network.path_to(ip)
        if id_.path:
            id_.tell(Event(EventKind.ADDR_RESOLVED))
        else:
            id_.tell(Event(EventKind.ADDR_ERROR, -errno.EHOSTUNREACH))

    def _resolve_route(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_, wanted = self._id(request), request.cm
        id_.path = replace(
            id_.way,
            traffic_class=wanted.traffic_class,
            ack_timeout=wanted.ack_timeout or id_.way.ack_timeout,
        )
        id_.tell(Event(EventKind.ROUTE_RESOLVED))

    # ---- connections -------------------------------------------------------------------------

    def _listen(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_ = self._id(request)
        if not id_.is_bound:
            self._bind(id_, Endpoint(), shares=False)
        if id_.talk or self._manager.ports.listener(id_.space, id_.source.port) is id_:
            raise Refused(errno.EINVAL, "the identifier listens or connects already")
        self._manager.ports.listen(id_, id_.space, id_.source.port)
        id_.backlog = min(request.cm.backlog or _MOST_BACKLOG, _MOST_BACKLOG)
        _fill_state(reply.cm.state, id_)

    def _connect(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_, now_ps = self._id(request), self._now_ps()
        param = _param(request, id_.space)
        if id_.talk:
            raise Refused(errno.EINVAL, "the identifier is connected already, or was")
        header = IpHeader(id_.source, id_.destination.ip).build()
        private = header + param.private_data
        service = service_id(id_.space, id_.destination.port)
        if id_.space is PortSpace.UDP:
            lookup = self._manager.lookup(id_.way)
            id_.talk, lookup.tell = lookup, id_.tell
            lookup.ask(service, private, now_ps=now_ps)
        else:
            connection = self._manager.connection(id_.way)
            id_.talk, connection.tell = connection, id_.tell
            transport = Transport.UC if request.cm.param.is_unreliable else Transport.RC
            with_header = replace(param, private_data=private)
            connection.connect(service, transport, with_header, now_ps=now_ps)
        self._manager.changed(id_.talk)

    def _accept(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_ = self._id(request)
        param = _param(request, id_.space)
        if isinstance(id_.talk, Lookup):
            id_.talk.answer(SidrStatus.VALID, param)
        else:
            id_.connection.accept(param, now_ps=self._now_ps())
            self._manager.changed(id_.connection)

    def _reject(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_ = self._id(request)
        private = _param(request, id_.space).private_data
        if isinstance(id_.talk, Lookup):
            id_.talk.answer(SidrStatus.REJECTED, ConnParam(private))
        else:
            id_.connection.reject(private)
            self._manager.changed(id_.connection)

    def _establish(self, request: Any, files: Sequence[int], reply: Any) -> None:
        connection = self._id(request).connection
        connection.establish()
        self._manager.changed(connection)

    def _disconnect(self, request: Any, files: Sequence[int], reply: Any) -> None:
        connection = self._id(request).connection
        connection.disconnect(now_ps=self._now_ps())
        self._manager.changed(connection)

    def _query_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        id_ = self._id(request)
        agreed, attr = id_.connection.agreed, reply.attr
        attr.dest_qp_num = agreed.remote_qpn
        attr.dest_address = agreed.path.address
        attr.rq_psn, attr.sq_psn = agreed.remote_psn, agreed.psn
        attr.path_mtu = agreed.path.mtu
        attr.sl, attr.traffic_class = agreed.path.sl, agreed.path.traffic_class
        attr.timeout = agreed.path.ack_timeout
        attr.retry_cnt, attr.rnr_retry = agreed.retry_count, agreed.rnr_retry_count
        attr.min_rnr_timer = agreed.min_rnr_timer
        attr.max_rd_atomic = agreed.initiator_depth
        attr.max_dest_rd_atomic = agreed.responder_resources
        _fill_state(reply.cm.state, id_)


def _endpoint(given: Any) -> Endpoint:
    return Endpoint(given.ip, given.port & 0xFFFF)


def _param(request: Any, space: PortSpace) -> ConnParam:
    """What a program says. Raises Refused for too much private data."""
    given = request.cm.param
    most = _MOST_PRIVATE[request.command, space]
    if given.private_bytes > most:
        raise Refused(
            errno.EINVAL, f"{given.private_bytes} bytes of private data; there is room for {most}"
        )
    return ConnParam(
        private_data=bytes(ffi.buffer(given.private_data, given.private_bytes)),
        responder_resources=given.responder_resources,
        initiator_depth=given.initiator_depth,
        flow_control=bool(given.flow_control),
        retry_count=given.retry_count & 7,
        rnr_retry_count=given.rnr_retry_count & 7,
        srq=bool(given.srq),
        qp_num=given.qp_num & 0xFFFFFF,
        qkey=given.qkey,
    )


def _fill_param(to: Any, param: ConnParam) -> None:
    to.qp_num, to.qkey = param.qp_num, param.qkey
    to.responder_resources = param.responder_resources
    to.initiator_depth = param.initiator_depth
    to.flow_control, to.srq = param.flow_control, param.srq
    to.retry_count, to.rnr_retry_count = param.retry_count, param.rnr_retry_count
    to.private_bytes = len(param.private_data)
    ffi.memmove(to.private_data, param.private_data, len(param.private_data))


def _fill_state(to: Any, id_: Identifier) -> None:
    to.source.ip, to.source.port = id_.source.ip, id_.source.port
    to.destination.ip, to.destination.port = id_.destination.ip, id_.destination.port
    path = id_.path
    if path is None:
        return
    ffi.memmove(to.path.local_gid, path.local_gid, len(path.local_gid))
    ffi.memmove(to.path.remote_gid, path.remote_gid, len(path.remote_gid))
    to.path.local_lid, to.path.remote_lid = path.local_lid, path.remote_lid
    to.path.pkey, to.path.mtu, to.path.sl = path.pkey, path.mtu, path.sl
    to.path.traffic_class, to.path.hop_limit = path.traffic_class, path.hop_limit
    to.path.ack_timeout = path.ack_timeout
