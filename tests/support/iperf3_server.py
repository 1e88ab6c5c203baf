"""`python -m tests.support.iperf3_server`: iperf3's server for one client, in the background.

Returns when the server listens. The server holds both ends of the pipe for its output, so its later
output is discarded.
"""

from __future__ import annotations

import os
import subprocess


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
