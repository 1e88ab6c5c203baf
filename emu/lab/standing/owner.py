"""`python -m emu.lab.standing.owner FD`: owns a lab in the background until it ends.

`emu up` starts it, sends it the request and the lab's socket, and is told how the
building goes. If `emu up` goes away before the lab is up, so does the lab.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from emu.errors import EmuError, ExitCode
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

    def tell(message: Message) -> None:
        """Whoever is not there any more to be told has changed their mind."""
        try:
            user.send(message)
        except EOFError:
            raise KeyboardInterrupt from None

    def tell_up() -> None:
        tell(Up())
        user.close()

    try:
        run_in_lab(request, on_progress=tell, on_up=tell_up, files=listener)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except EmuError as error:
        with suppress(EOFError, OSError):
            user.send(Failure.of(error))
        return ExitCode.FAILED
    finally:
        place.release(spec_from_json(request.spec).name)
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
