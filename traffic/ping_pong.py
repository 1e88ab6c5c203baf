"""Ping-pong: each message waits for the answer to the message before it.

h1    ping 0 ┐       ┌ ping 1 ┐       ┌ ping 2
h2           └ pong 0┘        └ pong 1┘              a pair has two flows, `<name>` and
                                                     `<name>.back`
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traffic.graph import Flow, OperationGraph
from traffic.patterns import Messages, Pairs, flows


def ping_pong(name: str, pairs: Pairs, messages: Messages) -> OperationGraph:
    """The pairs are independent. A request lasts from a ping until the delivery of its pong."""
    count = messages.count
    forth = flows(name, pairs, messages.verb, operations_each=count, priority=messages.priority)
    back = tuple(_answering(flow, count * len(pairs)) for flow in forth)
    pings = np.arange(count * len(pairs))
    pongs = pings + len(pings)
    followed = pings[pings % count != count - 1]
    earlier = np.concatenate([pongs[followed], pings])
    later = np.concatenate([followed + 1, pongs])
    return OperationGraph(
        flows=(*forth, *back),
        size_bytes=np.full(2 * len(pings), messages.size_bytes),
        not_before_ns=np.full(2 * len(pings), messages.start_ns),
        earlier=earlier,
        later=later,
        begins=pings,
        ends=pongs,
    )


def _answering(flow: Flow, shift: int) -> Flow:
    ids = flow.operations
    return replace(
        flow,
        name=f"{flow.name}.back",
        src=flow.dst,
        dst=flow.src,
        operations=range(ids.start + shift, ids.stop + shift),
    )
