"""The UDP source port of each flow of a fabric, before its queue pairs exist.

The port depends on the two queue pair numbers, which NICs assign in the order of the flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from emu._core import lib
from traffic.graph import Flow


def source_ports(flows: Iterable[Flow]) -> dict[str, int]:
    """Flow -> the UDP source port of its data and of the packets sent back.

    `flows` are all flows of the fabric, in order.
    """
    used: Counter[str] = Counter()
    ports = {}
    for flow in flows:
        own, remote = (lib.FIRST_QPN + used[host] for host in (flow.src, flow.dst))
        used.update((flow.src, flow.dst))
        ports[flow.name] = int(lib.roce_source_port(own, remote))
    return ports


def queue_pair_numbers(flows: Iterable[Flow]) -> dict[str, dict[str, int]]:
    """Connection -> host -> the number of its queue pair there.

    `flows` are all flows of the fabric, in order.
    """
    used: Counter[str] = Counter()
    numbers: dict[str, dict[str, int]] = {}
    for flow in flows:
        if flow.connection not in numbers:
            ends = (flow.src, flow.dst)
            numbers[flow.connection] = {host: lib.FIRST_QPN + used[host] for host in ends}
            used.update(ends)
    return numbers
