"""The process of a worker on this machine: `python -m emu.sweeps.local_worker`.

It reads the scheduler's address from its standard input, works on one run at a time, and ends when
the scheduler has gone or its standard input is closed: then the sweep has ended, even by `kill -9`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from tempfile import TemporaryDirectory

from distributed import Worker

import emu.quick_imports
import emu.sweeps.work

assert emu.sweeps.work  # imported before the first task, while the scheduler starts


def main() -> None:
    gc.freeze()
    address = sys.stdin.readline().strip()
    if not address:
        return
    threading.Thread(target=_end_with_the_sweep, daemon=True).start()
    with TemporaryDirectory(prefix="emu-worker-", ignore_cleanup_errors=True) as folder:
        asyncio.run(_serve(address, folder))


async def _serve(address: str, folder: str) -> None:
    """Works until the scheduler ends it, or is gone. Runs may take all memory that there is."""
    worker = Worker(
        address, nthreads=1, local_directory=folder, memory_limit=0, dashboard_address=None
    )
    async with worker:
        await worker.finished()


def _end_with_the_sweep() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
