"""`python -m emu.lab.trial veth|ib0`: tries to make such an interface; exits with 0 if it works.

It runs in a scratch network namespace, and makes the interface as a lab does.
"""

from __future__ import annotations

import os
import sys

from emu.errors import EmuError
from emu.lab import ib0
from emu.lab.net_steps import AddTun, AddVeth, NetStep
from emu.lab.netlink import carry_out
from emu.lab.netns_holder import keep_host

_STEPS: dict[str, NetStep] = {
    "veth": AddVeth("scratch", "trial", "peer", mtu=1500),
    "ib0": AddTun("scratch", ib0.NAME),
}


def main() -> int:
    try:
        carry_out([_STEPS[sys.argv[1]]], {"scratch": os.getpid(), "peer": keep_host()})
    except (OSError, EmuError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
