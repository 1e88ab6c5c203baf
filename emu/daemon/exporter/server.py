"""HTTP servers in the namespaces of agents, all in one process.

A thread waits for connections on all sockets; some others answer, so that a slow reader does not
hold up the rest.
"""

from __future__ import annotations

import errno
import selectors
import socket
import traceback
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import MetricsHandler
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from emu.errors import EmuError, FabricError
from emu.report.metrics import FamiliesOf, Family

_ANSWERING_THREADS = 32
_SECONDS_FOR_A_READER = 5.0
_BACKLOG = 64


def listen(node: str, address: str, port: int) -> socket.socket:
    """A socket on this address in the calling thread's namespace. Raises FabricError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"is refused ({error.strerror})"
        raise FabricError(
            f"{node}: the exporter's TCP port {port} {why}; set management.exporter.port to "
            "another one"
        ) from None
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


class _NodeCollector(Collector):
    """Prometheus' client asks it for the metrics of a node."""

    def __init__(self, node: str, families_of: FamiliesOf) -> None:
        self._node = node
        self._families_of = families_of

    def collect(self) -> Iterable[MetricFamily]:
        return map(_family, self._families_of(self._node))

    def describe(self) -> Iterable[MetricFamily]:
        """Nothing: metrics are known when they are asked for."""
        return ()


def _family(family: Family) -> MetricFamily:
    own = family.metric
    kind = CounterMetricFamily if own.is_counter else GaugeMetricFamily
    found = kind(own.name, own.help, labels=own.labels)
    for labels, value in family.samples:
        found.add_metric(labels, value)
    return found


class _Handler(MetricsHandler):
    timeout = _SECONDS_FOR_A_READER

    def do_GET(self) -> None:  # noqa: N802, http.server's name
        try:
            super().do_GET()
        except EmuError as error:
            self.send_error(503, str(error))
        except Exception:
            traceback.print_exc()
            self.send_error(500, "a bug in the exporter; its error is on the lab's stderr")


def handler_of(node: str, families_of: FamiliesOf) -> type[MetricsHandler]:
    """What answers requests to a node."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_NodeCollector(node, families_of))
    return type("Handler", (_Handler,), {"registry": registry})


def serve(
    listeners: Mapping[str, socket.socket], families_of: FamiliesOf, until_readable: int
) -> None:
    """Answers until there is something to read on this descriptor."""
    handlers = {node: handler_of(node, families_of) for node in listeners}
    with selectors.DefaultSelector() as selector, ThreadPoolExecutor(_ANSWERING_THREADS) as pool:
        selector.register(until_readable, selectors.EVENT_READ, None)
        for node, listener in listeners.items():
            selector.register(listener, selectors.EVENT_READ, node)
        while True:
            for key, _ in selector.select():
                if key.data is None:
                    return
                assert isinstance(key.fileobj, socket.socket)
                try:
                    connection, address = key.fileobj.accept()
                except OSError:  # the client has gone already
                    continue
                pool.submit(_answer, handlers[key.data], connection, address)


def _answer(
    handler: type[MetricsHandler], connection: socket.socket, address: tuple[str, int]
) -> None:
    """Answers one connection. A client that has gone, or reads too slowly, is left."""
    with connection:
        connection.settimeout(_SECONDS_FOR_A_READER)
        try:
            handler(connection, address, None)  # type: ignore[arg-type]
        except OSError:
            return
