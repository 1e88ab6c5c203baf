"""A custom file for Mininet's `mn`: the emulator's topologies and, with `--link emu`, its cables.

    mn --custom emu/mn.py --topo leaf_spine,2,2,2 --link emu --test pingall

This connects Mininet's hosts to an emulated fabric: cables with a rate and a delay, switches
with buffers, PFC and ECN. `pingall`, `iperf` and `link leaf1 h1 down` act on that fabric, and
the prompt has `queues`, `pause`, `cnp` and `counters` beside Mininet's own commands. It needs
no root. Options follow a comma:

    --link emu,slowdown=10                      everything is ten times slower
    --link emu,spec=topologies/incast.emu.yml   everything but the topology is from that spec

Other options of `mn` about what to build (switches, hosts, controllers, addresses) are refused.
With any other link, Mininet builds the topologies in its usual way.

Mininet executes this text with its own Python; the file is not a module of the package. The
emulator's Python then runs Mininet's command again, inside a lab.
"""

import os
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path


def _is_asked_for(words: list[str]) -> bool:
    """Whether the command line has `--link emu`."""
    links = [word for option, word in pairwise(words) if option == "--link"]
    links += [word.removeprefix("--link=") for word in words if word.startswith("--link=")]
    return any(link.split(",")[0] == "emu" for link in links)


_checkout = Path(sys._getframe().f_code.co_filename).resolve().parents[1]
_inside = sys.modules.get("emu.lab.mininet_command")

if _inside is not None and _inside.runs_here():
    globals().update(_inside.custom_names())
elif _is_asked_for(sys.argv):
    _own = _checkout / ".venv" / "bin" / "python"
    _python = str(_own if _own.exists() else sys.executable)
    if not _own.exists() and find_spec("click") is None:
        sys.exit(f"the emulator is not set up yet; run: make -C {_checkout} setup")
    os.execv(_python, [_python, "-m", "emu.cli.main", "mn", *sys.argv])
else:
    sys.path.append(str(_checkout))
    from topologies.mininet_topo import all_topos

    topos = all_topos()
