"""`python -m emu.daemon.daemon_main FD`: owns a background lab until it ends.

    emu up ─────── ServeLab ──────▶ owner       takes the lab's name, builds the lab
           ◀── Progress, Failure ──
           ◀────────── Up ─────────               the lab answers
           ─────────── Up ────────▶               the lab stays when `emu up` ends

Until `emu up` has sent `Up`, the lab ends with it, at every stage of the building.

The owner claims the name and releases it, so that no name is left without a lab. If the lab dies
later, the owner records the reason for `emu status`.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

import emu.quick_imports  # noqa: F401 - what follows takes less time
from emu.daemon import registry
from emu.errors import ExitCode
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Failure, Up
from emu.lab.namespace import run_in_lab

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # until `_own` releases the name
    for number in _INTERRUPTS:
        signal.signal(number, _interrupt_once)
    user = Channel.inherited(int(sys.argv[-1]))
    try:
        job = user.expect(ServeLab)
        name = job.name
        listener = registry.claim(name)
    except EOFError:
        return ExitCode.INTERRUPTED
    except Exception as error:
        _try_to_send(user, Failure.of(error))
        return ExitCode.FAILED
    with listener:
        return _own(name, job, user, listener.fileno())


def _own(name: str, job: ServeLab, user: Channel, listener: int) -> int:
    """Runs the lab, and releases its name when it has ended."""
    stays = threading.Event()
    reason = ""

    def send(message: Message) -> None:
        """Sends a message to `emu up`. Ends the lab if `emu up` has ended."""
        try:
            user.send(message)
        except EOFError:
            raise KeyboardInterrupt from None

    def report_up() -> None:
        send(Up())
        stays.wait()

    try:
        threading.Thread(target=_wait_for_the_user, args=(user, stays), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
        run_in_lab(job, on_progress=send, on_up=report_up, files=[listener])
    except KeyboardInterrupt:
        reason = "its owner or its first process received SIGINT or SIGTERM"
        return ExitCode.INTERRUPTED
    except Exception as error:
        failure = Failure.of(error)
        reason = failure.text
        _try_to_send(user, failure)
        return ExitCode.FAILED
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
        registry.release(name, reason if stays.is_set() else "")
    return ExitCode.OK


def _wait_for_the_user(user: Channel, stays: threading.Event) -> None:
    """Ends the lab if `emu up` ends first, whatever the main thread waits for."""
    try:
        user.expect(Up)
    except EOFError:
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        signal.pthread_kill(main_thread, signal.SIGTERM)
    else:
        stays.set()


def _try_to_send(user: Channel, message: Message) -> None:
    """Sends to `emu up`, if it still runs."""
    with suppress(EOFError, OSError):
        user.send(message)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, and ignores later signals, which would interrupt the clean-up."""
    for each in _INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
