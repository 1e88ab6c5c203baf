"""`python -m tests.support.iperf3_server`: iperf3's server for one client, in the background.

Returns when the server listens. The server holds both ends of the pipe for its output, so its later
output is discarded.
"""

from __future__ import annotations

import os
import subprocess

MORE_THAN_IN_FLIGHT = ("--bytes", "1M", "--window", "64K")
"""iperf3's server counts what has come when the client says that it has sent all. What the client's
socket holds may come later."""


def main() -> None:
    listens, said = os.pipe()
    server = subprocess.Popen(
        ["iperf3", "--server", "--one-off", "--forceflush"],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=[listens],
        start_new_session=True,
    )
    os.close(said)
    text = b""
    while b"listening" not in text:
        assert server.poll() is None, text
        text += os.read(listens, 4096)


if __name__ == "__main__":
    main()
