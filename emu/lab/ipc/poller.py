"""One pollable descriptor over several channels, for `AfPacketDriver.run`, which watches one."""

from __future__ import annotations

import select

from emu.lab.ipc.channel import Channel


class Poller:
    """Polls several channels as long as the process runs."""

    def __init__(self, *channels: Channel) -> None:
        self._poll = select.epoll()
        for channel in channels:
            self._poll.register(channel, select.EPOLLIN)

    def fileno(self) -> int:
        """Readable when any channel has a message."""
        return self._poll.fileno()

    def has_message(self, channel: Channel) -> bool:
        """Whether this channel has a message, or its other end is closed."""
        return any(descriptor == channel.fileno() for descriptor, _ in self._poll.poll(0))
