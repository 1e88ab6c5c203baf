"""Path records: the service level that a path must be used with.

Some engines avoid credit loops by giving paths different service levels, which only path records
contain. The needed records are queried from OpenSM as a host would do it, one at a time, because
ibsim garbles answers of several packets.

A sweep may change path records. Hosts get no notice: a queue pair keeps the level that it had when
it connected. According to OpenSM's torus-2QoS(8), OPERATIONAL CONSIDERATIONS, applications would
have to query again, or their paths may form a credit loop. Few applications do so before a
connection fails.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from emu.errors import FabricError
from emu.subnet.ibsim import Ibsim
from emu.subnet.programs import program
from emu.subnet.subnet import PathSLs

_CLIENTS = 3
"""Those that ask at the same time. ibsim serves ten at once: up to six managers, and in a lab an
operator's tool."""
_SECONDS_TO_ANSWER = 10.0
_LEVEL = re.compile(r"^\s*sl\.+0x([0-9A-Fa-f]+)$", re.MULTILINE)


def service_levels(
    simulator: Ibsim, lids: Mapping[str, int], pairs: Iterable[tuple[str, str]], *, in_order: bool
) -> PathSLs:
    """Source -> destination -> SL, for these pairs of hosts. Raises FabricError.

    `in_order` asks for one after the other: the answers of some engines depend on the order.
    """
    wanted = sorted(set(pairs))

    def ask(pair: tuple[str, str]) -> int:
        src, dst = pair
        return _ask(simulator, src, lids[src], lids[dst])

    with ThreadPoolExecutor(1 if in_order else _CLIENTS) as pool:
        levels: PathSLs = {}
        for (src, dst), level in zip(wanted, pool.map(ask, wanted), strict=True):
            levels.setdefault(src, {})[dst] = level
    return levels


def _ask(simulator: Ibsim, at: str, slid: int, dlid: int) -> int:
    command = [
        *program("saquery", package="infiniband-diags"),
        *("PR", "--slid", str(slid), "--dlid", str(dlid), "--numb_path", "1"),
    ]
    try:
        answer = subprocess.run(
            command,
            cwd=simulator.workdir,
            env={**os.environ, **simulator.environment(at, simulator.workdir)},
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_ANSWER,
        )
    except subprocess.TimeoutExpired:
        raise FabricError(f"OpenSM did not answer when {at} asked for a path") from None
    level = _LEVEL.search(answer.stdout)
    if level is None:
        output = (answer.stderr or answer.stdout).strip()
        raise FabricError(f"OpenSM has no path from LID {slid} to LID {dlid}: {output}")
    return int(level[1], 16)
