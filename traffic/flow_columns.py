"""The flows of a workload as columns of numbers, for work on all of them at once.

    flows      h1 > h2   h2 > h3   h1 > h2        hosts   h1 h2 h3
    src           0         1         0
    dst           1         2         1

A workload may have a million flows. A loop in Python over them takes about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from traffic.graph import Flow
    from traffic.verb import Verb

Column = NDArray[np.int64]
_T = TypeVar("_T")


class FlowColumns:
    """Columns with a row for each flow. A flow's host is its place in `hosts`."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._flows = flows
        names = [flow.src for flow in flows], [flow.dst for flow in flows]
        number = _numbers(name for column in names for name in column)
        self.hosts: tuple[str, ...] = tuple(number)
        self.src, self.dst = (_looked_up(number, column) for column in names)
        verbs = [flow.verb for flow in flows]
        which = list(map(id, verbs))  # an enum's hash is worked out in Python
        self.verbs: tuple[Verb, ...] = tuple(dict(zip(which, verbs, strict=True)).values())
        """Those that occur."""
        self.verb = _looked_up(_numbers(which), which)
        """Each flow's place in `verbs`."""

    def where(self, test: Callable[[Verb], bool]) -> NDArray[np.bool_]:
        """Whether a flow's verb passes a test."""
        return np.array(list(map(test, self.verbs)), bool)[self.verb]

    def of_hosts(self, value: Callable[[str], Any], hosts: Column, dtype: Any) -> NDArray[Any]:
        """The values of hosts in a column."""
        return np.array(list(map(value, self.hosts)), dtype)[hosts]

    @cached_property
    def bytes_from(self) -> Column:
        """The host whose memory the bytes are read from."""
        return np.where(self.where(lambda verb: verb.fetches), self.dst, self.src)

    @cached_property
    def bytes_to(self) -> Column:
        """The host whose memory they are written to."""
        return np.where(self.where(lambda verb: verb.fetches), self.src, self.dst)

    def of_traffic(self, value: Callable[[str], bool]) -> NDArray[np.bool_]:
        """The value of each flow's entry in the spec's `traffic:`."""
        names, of_flow = self._traffic
        return np.array(list(map(value, names)), bool)[of_flow]

    @cached_property
    def _traffic(self) -> tuple[tuple[str, ...], Column]:
        names = [flow.traffic for flow in self._flows]
        number = _numbers(names)
        return tuple(number), _looked_up(number, names)

    @cached_property
    def connection(self) -> Column:
        """A number for each flow's connection."""
        names = [flow.connection for flow in self._flows]
        return _looked_up(_numbers(names), names)

    @cached_property
    def operations(self) -> Column:
        """The number of each flow's operations."""
        return np.array([len(flow.operations) for flow in self._flows], np.int64)

    @cached_property
    def first_operation(self) -> Column:
        return np.array([flow.operations.start for flow in self._flows], np.int64)


def _numbers(values: Iterable[_T]) -> dict[_T, int]:
    """A number for each value, in the order of their first appearance."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _looked_up(number: Mapping[_T, int], values: Sequence[_T]) -> Column:
    return np.fromiter(map(number.__getitem__, values), np.int64, len(values))
