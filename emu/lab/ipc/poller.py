"""One pollable descriptor over several channels, for `AfPacketDriver.run`, which watches one."""

from __future__ import annotations

import select

from emu.lab.ipc.channel import Channel


class Wakers:
    """The channels, as long as the process lives."""

    def __init__(self, *channels: Channel) -> None:
        self._poll = select.epoll()
        for channel in channels:
            self._poll.register(channel, select.EPOLLIN)

    def fileno(self) -> int:
        """Readable when there is something on any of them."""
        return self._poll.fileno()

    def is_spoken_to(self, channel: Channel) -> bool:
        """Whether there is something on this one."""
        return any(descriptor == channel.fileno() for descriptor, _ in self._poll.poll(0))
