"""`python -m emu.daemon.daemon_main FD`: owns a lab in the background until it ends.

    emu up ─────── ServeLab ──────▶ owner       takes the lab's name, builds the lab
           ◀── Progress, Failure ──
           ◀────────── Up ─────────               the lab answers
           ─────────── Up ────────▶               it is to stay: `emu up` may end now

As long as `emu up` has not said that the lab is to stay, the lab ends with it: whatever the
building waits for, and also when it is finished at that very moment.

The owner takes the name and gives it back, so that no name is left without a lab. When the
lab dies later there is nobody to tell: the owner notes why, for `emu status`.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

from emu.daemon import registry
from emu.errors import ExitCode
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Failure, Up
from emu.lab.namespace import run_in_lab
from emu.spec.scenario import spec_from_json

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # until a name would be given back
    for number in _INTERRUPTS:
        signal.signal(number, _interrupt_once)
    user = Channel.inherited(int(sys.argv[-1]))
    try:
        job = user.expect(ServeLab)
        name = spec_from_json(job.spec).name
        listener = registry.claim(name)
    except EOFError:
        return ExitCode.INTERRUPTED
    except Exception as error:
        _try_to_send(user, Failure.of(error))
        return ExitCode.FAILED
    with listener:
        return _own(name, job, user, listener.fileno())


def _own(name: str, job: ServeLab, user: Channel, listener: int) -> int:
    """Has the name, and gives it back when the lab is gone."""
    is_to_stay = threading.Event()
    reason = ""

    def send(message: Message) -> None:
        """A client that has disconnected needs no answer."""
        try:
            user.send(message)
        except EOFError:
            raise KeyboardInterrupt from None

    def say_up() -> None:
        send(Up())
        is_to_stay.wait()

    try:
        threading.Thread(target=_wait_for_the_user, args=(user, is_to_stay), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
        run_in_lab(job, on_progress=send, on_up=say_up, files=[listener])
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
        registry.release(name, reason if is_to_stay.is_set() else "")
    return ExitCode.OK


def _wait_for_the_user(user: Channel, is_to_stay: threading.Event) -> None:
    """Ends the lab when `emu up` goes away, whatever the main thread waits for."""
    try:
        user.expect(Up)
    except EOFError:
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        signal.pthread_kill(main_thread, signal.SIGTERM)
    else:
        is_to_stay.set()


def _try_to_send(user: Channel, message: Message) -> None:
    """The user may be gone already."""
    with suppress(EOFError, OSError):
        user.send(message)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """A second signal would cut short what the first one began."""
    for each in _INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
