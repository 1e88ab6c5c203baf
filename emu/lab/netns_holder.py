"""A host's namespaces, held by a thread of the lab's first process.

A namespace exists as long as a process or thread is in it. A run needs no shells on its hosts, and
a thread starts in half a millisecond, a shell in eight. The thread's id names the namespaces like a
process id: in `/proc`, for `ip link ... netns` and for `mnexec -a`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future

from emu.lab.mounts import MS_BIND, mount
from emu.lab.netns import unshare_host


def keep_host(hosts: str = "") -> int:
    """Makes the namespaces of a host. They exist as long as this process. `hosts`: the file that is
    /etc/hosts there; empty: the lab's.

    Returns the id of a thread in them. Raises OSError.
    """
    inside: Future[int] = Future()
    threading.Thread(target=_keep, args=(inside, hosts), name="a host", daemon=True).start()
    return inside.result()


def _keep(inside: Future[int], hosts: str) -> None:
    try:
        unshare_host()
        if hosts:
            mount(hosts, "/etc/hosts", flags=MS_BIND)
    except OSError as error:
        inside.set_exception(error)
        return
    inside.set_result(threading.get_native_id())
    threading.Event().wait()
