"""Link down: a cable without a link, as when its plug is pulled."""

from __future__ import annotations

from typing import ClassVar

from emu.spec.fault.kind import LostLink, register


@register
class LinkDown(LostLink):
    """Nothing passes the cable, and packets that wait for it are discarded."""

    key: ClassVar[str] = "link-down"
    meaning: ClassVar[str] = "A cable through which nothing passes."
