"""Link down: a pulled plug."""

from __future__ import annotations

from typing import ClassVar

from emu.spec.fault.kind import LostLink, register


@register
class LinkDown(LostLink):
    """A pulled plug: nothing passes, and what waits for the cable is discarded."""

    key: ClassVar[str] = "link-down"
    meaning: ClassVar[str] = "A cable through which nothing passes."
