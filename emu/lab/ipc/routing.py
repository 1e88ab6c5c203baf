"""What the shim and the process that routes say to each other when links change."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.subnet.subnet import Lfts


@message
class LinksChanged:
    """From the shim: links were lost or came back."""

    at_ps: int
    """When the last of them did, in emulated time."""
    down: tuple[str, ...]
    """Every cable that is lost now, by one of its ports."""


@message
class Tables:
    """From the subnet manager: follow these tables. Answered by `Converging`."""

    lfts: Lfts
    """Those of all switches."""
    at_ps: int
    down: tuple[str, ...]
    """The change that the tables answer."""
    seconds: float
    """Wall-clock time since then."""


@message
class Routes:
    """From the lab to the shim of an Ethernet fabric: follow these routes. Answered by
    `Converging`."""

    at_ps: int
    """When the links changed that the routes answer."""
    changes: dict[str, dict[str, tuple[int, ...]]]
    """Switch -> host -> port numbers; none: the host cannot be reached."""


@message
class Converging:
    """From the shim: the tables or routes have arrived."""

    at_ps: int
    """When the links changed that they answer."""
    in_force_ps: int
    """When the last switch follows them."""


@message
class RoutesLoaded:
    """From the lab to the shim: Open vSwitch's tables have the routes, too."""

    at_ps: int
    """When the links changed that the routes answer."""
