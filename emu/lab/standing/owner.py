"""`python -m emu.lab.standing.owner FD`: owns a lab in the background until it ends.

`emu up` starts it, sends it the request and the lab's socket, and is told how the
building goes. If `emu up` goes away before the lab is up, so does the lab.
When the lab dies later there is nobody to tell: the owner notes why, for `emu status`.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from emu.errors import ExitCode
from emu.lab.channel import Channel
from emu.lab.messages import Failure, Message, Request, Up
from emu.lab.namespace import run_in_lab
from emu.lab.standing import place
from emu.spec.scenario import spec_from_json


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    user = Channel.inherited(int(sys.argv[-1]))
    request = user.expect(Request)
    listener = user.take_files()
    place.own(listener[0])
    name, is_up, reason = spec_from_json(request.spec).name, False, ""

    def tell(message: Message) -> None:
        """Whoever is not there any more to be told has changed their mind."""
        try:
            user.send(message)
        except EOFError:
            raise KeyboardInterrupt from None

    def tell_up() -> None:
        nonlocal is_up
        tell(Up())
        is_up = True
        user.close()

    try:
        run_in_lab(request, on_progress=tell, on_up=tell_up, files=listener)
    except KeyboardInterrupt:
        reason = "its owner or its first process received SIGINT or SIGTERM"
        return ExitCode.INTERRUPTED
    except Exception as error:
        failure = Failure.of(error)
        reason = failure.text
        with suppress(EOFError, OSError):
            user.send(failure)
        return ExitCode.FAILED
    finally:
        place.release(name, reason if is_up else "")
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
