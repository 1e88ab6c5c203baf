"""Watches the processes of a lab. When one dies, the lab ends and reports which.

Rules:

- No process of a lab ends before the lab, unless the lab ends it (`end_process`). A process that
  ends by itself has died.
- The lab ends with the exit of its first process. The kernel then ends all other processes and
  removes the namespaces; no clean-up is needed.
- The lab also ends when its owner (the `emu` process) closes the channel.
- If the lab waits for each of them (`end_when_stopped`), none is stopped (SIGSTOP) for long.

A thread waits for these events, so that the lab notices them at any time. The supervisor runs in
the first process of a pid namespace: daemons that detach become its children.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from emu.errors import ExitCode
from emu.lab import last_words
from emu.lab.fast_kill import kill_fast
from emu.lab.fork_server import ForkServer
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message
from emu.lab.ipc.messages import Failure, Progress, Up
from emu.lab.stopped import SECONDS_BETWEEN_LOOKS, StopWatch


class Supervisor:
    """The processes of one lab."""

    def __init__(
        self,
        owner: Channel,
        inherited_fds: Sequence[int] = (),
        fork_server: ForkServer | None = None,
    ) -> None:
        """`inherited_fds`: open files from the owner, for the lab's job. `fork_server`: starts the
        commands that it can run."""
        self.inherited_fds = inherited_fds
        self._owner = owner
        self._fork_server = fork_server
        self._selector = selectors.EpollSelector()
        self._selector.register(owner, selectors.EVENT_READ)
        self._channels: dict[int, Channel] = {}  # kept open: a process ends when its channel closes
        self._ends: dict[int, int] = {}  # pid -> pidfd, readable when the process ends
        self._names: dict[int, str] = {}  # of all processes so far, by pid
        self._ending = False
        self.on_death: list[Callable[[str], None]] = []
        """Called with the reason when a process has died, before the lab ends."""
        if fork_server is not None:
            self.watch_child("the fork server", fork_server.pid)
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._watcher.start()

    def watch_child(self, name: str, pid: int) -> None:
        """Watches a child process that this object did not start."""
        self._names[pid] = name
        self._ends[pid] = os.pidfd_open(pid)
        self._selector.register(self._ends[pid], selectors.EVENT_READ, name)

    def end_when_stopped(self) -> None:
        """From now on, the lab also ends when one of its processes is stopped and does not go
        on."""
        threading.Thread(target=self._watch_for_stops, name="stops", daemon=True).start()

    def end_process(self, pid: int) -> None:
        """Ends a process whose work is done. The thread that reads its channel must close it."""
        self._selector.unregister(self._ends[pid])
        kill_fast([pid])
        os.close(self._ends.pop(pid))
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        self._channels.pop(pid, None)

    def discard(self, channel: Channel) -> None:
        """Ends a process that is not needed after all, and closes its channel."""
        (pid,) = (pid for pid, own in list(self._channels.items()) if own is channel)
        self.end_process(pid)
        channel.close()

    @contextmanager
    def needed(self, channel: Channel) -> Iterator[None]:
        """Discards a process if the body fails.

        Not if a process has died (EOFError): the lab ends then, and the watcher must find which.
        """
        try:
            yield
        except EOFError:
            raise
        except Exception:
            self.discard(channel)
            raise

    def spawn(self, name: str, command: Sequence[str]) -> Channel:
        """Starts a process of the lab. Its last argument is its channel's descriptor."""
        channel, far = channel_pair()
        with far:
            pid = self._start(command, far.fileno())
        self.watch_child(name, pid)
        self._channels[pid] = channel
        return channel

    def _start(self, command: Sequence[str], channel: int) -> int:
        if self._fork_server is not None and self._fork_server.can_run(command):
            return self._fork_server.run(command, channel)
        process = subprocess.Popen(
            [*command, str(channel)],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[channel],
            start_new_session=True,  # Ctrl-C must not interrupt it
        )
        return process.pid

    def progress(self, progress: Progress) -> None:
        """Sends progress to the lab's owner."""
        self._owner.send(progress)

    def up(self) -> None:
        """Tells the lab's owner that the lab answers queries."""
        self._owner.send(Up())

    def wait_for_the_end(self) -> None:
        """Waits until the watcher ends the lab. Called after a channel has closed."""
        self._watcher.join()

    def end_job(self, result: Message, files: Sequence[int]) -> None:
        """Sends the result of the lab's job to the owner, and ends all processes.

        The owner may close the channel as soon as it has the result.
        """
        self._ending = True
        with suppress(EOFError):  # the owner is gone already
            self._owner.send(result, files)
        kill_fast(list(self._ends))

    def _watch(self) -> None:
        while not (events := self._selector.select()):  # meanwhile `end_process` removed one
            pass
        key, _ = events[0]
        if self._ending:
            return
        if key.fileobj is self._owner:
            os._exit(ExitCode.INTERRUPTED)
        assert isinstance(key.fileobj, int)
        reason = f"{key.data} {_how_it_ended(key.fileobj)}"
        said = last_words.read(sys.stderr.fileno())
        self._end_lab(f"{reason}: {said}" if said else reason)

    def _watch_for_stops(self) -> None:
        watch = StopWatch()
        while not self._ending:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            if (pid := watch.find_stopped(list(self._ends))) is not None and not self._ending:
                self._end_lab(f"{self._names[pid]} was stopped by a signal and does not go on")

    def _end_lab(self, reason: str) -> NoReturn:
        with suppress(EOFError):
            self._owner.send(Failure("fabric", reason))
        for report in self.on_death:
            report(reason)
        os._exit(ExitCode.FAILED)


def _how_it_ended(pidfd: int) -> str:
    end = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    assert end is not None
    if end.si_code == os.CLD_EXITED:
        return f"ended by itself (exit code {end.si_status})"
    return f"died (signal {end.si_status})"
