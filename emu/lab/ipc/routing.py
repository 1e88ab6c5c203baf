"""The messages between the shim and the lab's routing thread when links change, and the record of a
sweep."""

from __future__ import annotations

from typing import NamedTuple

from emu.lab.ipc.codec import message
from emu.subnet.subnet import Lfts


@message
class LinksChanged:
    """From the shim: links were lost or came back."""

    at_ps: int
    """The emulated time of the latest change."""
    down: tuple[str, ...]
    """Every cable that is lost now, named by one of its ports."""


@message
class Tables:
    """From the subnet manager: follow these tables. Answered by `Converging`."""

    lfts: Lfts
    """The tables of all switches."""
    at_ps: int
    down: tuple[str, ...]
    """`at_ps` and `down` of the `LinksChanged` that the tables answer."""
    seconds: float
    """Wall-clock time since that message arrived."""


@message
class Sweep:
    """A sweep of the subnet manager that a link change has caused."""

    at_ns: int
    """The emulated time of the link change."""
    seconds: float
    """Wall-clock time from the link change to the new tables."""


NumbersByHost = dict[str, tuple[int, ...]]
"""Host -> port numbers of a switch; none: the host cannot be reached."""


class RouteStep(NamedTuple):
    """Routes that a routing protocol has learned."""

    at_ps: int
    """When they are in force; now if that has passed."""
    changes: dict[str, NumbersByHost]
    """By switch."""


@message
class Routes:
    """From the lab, on Ethernet: follow these routes. Answered by `Converging`."""

    number: int
    """Counts these messages."""
    at_ps: int
    """The time of the link change that the routes answer."""
    changes: dict[str, NumbersByHost]
    """By switch: routes that are in force `convergence` after that time."""
    learned: tuple[RouteStep, ...] = ()


@message
class Converging:
    """From the shim: the tables or routes have arrived."""

    at_ps: int
    """The time of the link change that they answer."""
    in_force_ps: int
    """The time from which all switches follow them."""


@message
class RoutesLoaded:
    """From the lab: Open vSwitch's tables have the routes, too."""

    number: int
    """That of the latest `Routes` whose routes they have."""


@message
class Unanswered:
    """From the lab: there will be no tables for a link change; switches keep theirs. Only a shim
    that waits for the answer needs it."""

    at_ps: int
    """The time of the link change."""
