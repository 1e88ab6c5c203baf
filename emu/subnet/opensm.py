"""Runs OpenSM once against ibsim and reads what it decided.

Both run without root, in the caller's network namespace, where ibsim's sockets
live under a name of this sweep's own (abstract, so nothing is left of them).
All their files lie in `workdir`, and neither reads the machine's configuration
or outlives the caller.

The default engine is updn: a packet that went down never goes up again, so that
no circle of waiting for credit can close. In a leaf-spine its routes for hosts
are the shortest ones, spread over the spines as minhop spreads them. One spine
cannot reach another, which no host misses.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from emu.errors import FabricError, HostError
from emu.subnet.dumps import parse_guid2lid, parse_lfts
from emu.subnet.netfile import host_port_guid, net_file, switch_guid
from emu.subnet.subnet import Subnet
from topologies.graph import Topology

_SECONDS_TO_START = 10.0
_SECONDS_TO_SWEEP = 30.0
_LOG_LEVEL = "0x43"  # errors, information, and routing, which makes OpenSM dump its tables
_LOG = "opensm.log"
_LAST_LINES = 8
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where Debian has both programs; an ordinary user's PATH may lack /usr/sbin."""


def sweep(topology: Topology, *, engine: str = "updn", workdir: Path) -> Subnet:
    """Lets OpenSM discover and route the fabric. `workdir` is created and keeps all files.

    OpenSM falls back to minhop where an engine cannot route a fabric (updn finds
    no roots in a ring); the subnet's `engine` is the one it used.

    Raises HostError when a program is missing, FabricError when OpenSM fails, does
    not know the engine, or leaves a host out of reach.
    """
    started = time.monotonic()
    workdir = workdir.absolute()
    workdir.mkdir(parents=True, exist_ok=True)
    with _ibsim(topology, workdir) as socket_name:
        _opensm(
            engine, workdir, {"IBSIM_SOCKNAME": socket_name, "SIM_HOST": topology.hosts[0].name}
        )
    used = _engine_used(engine, workdir)
    lids, lfts = _read(topology, workdir)
    subnet = Subnet(lids, lfts, used, time.monotonic() - started)
    _check_reach(topology, subnet)
    return subnet


@contextmanager
def _ibsim(topology: Topology, workdir: Path) -> Iterator[str]:
    """Simulates the fabric's management while the context lasts; yields its socket name."""
    net = workdir / "fabric.net"
    net.write_text(net_file(topology))
    socket_name = f"emu-{secrets.token_hex(8)}"
    log = workdir / "ibsim.log"
    with log.open("wb") as output:
        simulator = subprocess.Popen(
            [*_program("ibsim", package="ibsim-utils"), "-s", "-n", *_limits(topology), net.name],
            cwd=workdir,
            env={**os.environ, "IBSIM_SOCKNAME": socket_name},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for_sockets(simulator, socket_name, log)
        yield socket_name
    finally:
        simulator.kill()
        simulator.wait()


def _limits(topology: Topology) -> list[str]:
    """Room for exactly this fabric; a switch also has a port 0."""
    nodes = len(topology.hosts) + len(topology.switches)
    ports = sum(port.number + 1 for own in topology.ports.values() for port in own[-1:])
    return ["-N", str(nodes), "-S", str(len(topology.switches)), "-P", str(ports)]


def _wait_for_sockets(simulator: subprocess.Popen[bytes], socket_name: str, log: Path) -> None:
    """ibsim says nothing when its sockets are there, so we look for the last of them."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while f"@{socket_name}:out9" not in Path("/proc/net/unix").read_text():
        if simulator.poll() is not None:
            raise FabricError(f"ibsim refused the fabric; its last words:\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise FabricError(f"ibsim did not start within {_SECONDS_TO_START:g} s")
        time.sleep(0.002)


def _opensm(engine: str, workdir: Path, simulator: dict[str, str]) -> None:
    """One sweep, from the host that `simulator` names. Leaves the dump files in `workdir`."""
    (workdir / "opensm.conf").touch()  # empty: not the machine's own
    command = [
        *_program("opensm", package="opensm"),
        *("--once", "--sweep", "0", "--routing_engine", engine),
        *("--config", "opensm.conf", "--Pconfig", "no-partitions.conf"),
        *("--log_file", _LOG, "--erase_log_file", "-D", _LOG_LEVEL),
        *("--dump_files_dir", "."),
    ]
    environment = {**os.environ, **simulator, "LD_PRELOAD": str(_umad_to_ibsim())}
    environment |= {"OSM_TMP_DIR": ".", "OSM_CACHE_DIR": "."}
    with (workdir / "opensm.out").open("wb") as output:
        try:
            subprocess.run(
                command,
                cwd=workdir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS_TO_SWEEP,
            )
        except subprocess.TimeoutExpired:
            raise _failed(f"did not finish within {_SECONDS_TO_SWEEP:g} s", workdir) from None


def _engine_used(engine: str, workdir: Path) -> str:
    """The engine that made the tables, from the log: OpenSM's exit code is 0 whatever happened."""
    log = _text(workdir / _LOG)
    if f"cannot find or setup routing engine '{engine}'" in log:
        raise FabricError(
            f"OpenSM has no routing engine {engine!r}; "
            "it has updn, dnup, minhop, ftree, dor, lash, nue, sssp and dfsssp"
        )
    used = re.search(r"(\S+) tables configured on all switches", log)
    if used is None or "SUBNET UP" not in log:
        raise _failed("could not bring the subnet up", workdir)
    return used[1]


def _failed(what: str, workdir: Path) -> FabricError:
    last_words = _tail(workdir / _LOG) or _tail(workdir / "opensm.out")
    return FabricError(f"OpenSM {what}; the last lines of its log:\n{last_words}")


def _check_reach(topology: Topology, subnet: Subnet) -> None:
    """Every host can be reached from every switch that has hosts."""
    leaves = {
        topology.peer[port].node for host in topology.hosts for port in topology.ports[host.name]
    }
    for leaf, host in product(sorted(leaves), topology.hosts):
        subnet.path(topology, leaf, host.name)


def _read(topology: Topology, workdir: Path) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
    """LIDs and LFTs by name."""
    lids = parse_guid2lid(_text(workdir / "guid2lid"))
    lfts = parse_lfts(_text(workdir / "opensm-lfts.dump"))
    guids = {host.name: host_port_guid(host) for host in topology.hosts}
    guids |= {switch.name: switch_guid(switch) for switch in topology.switches}
    missing = [name for name, guid in guids.items() if guid not in lids]
    missing += [s.name for s in topology.switches if switch_guid(s) not in lfts]
    if missing:
        raise FabricError(
            f"OpenSM did not find {', '.join(dict.fromkeys(missing))}: "
            f"is the fabric in one piece? Its log is {workdir / 'opensm.log'}"
        )
    return (
        {name: lids[guid] for name, guid in guids.items()},
        {switch.name: lfts[switch_guid(switch)] for switch in topology.switches},
    )


def _program(name: str, *, package: str) -> Sequence[str]:
    """The command to run it so that the kernel ends it with us, however we end."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
    if path is None:
        raise _not_installed(name, package)
    return ["setpriv", "--pdeathsig", "KILL", path]


def _umad_to_ibsim() -> Path:
    """The library that leads a program's management packets to ibsim."""
    for path in Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"):
        return path
    raise _not_installed("libumad2sim.so", "libumad2sim0")


def _not_installed(what: str, package: str) -> HostError:
    return HostError(
        f"{what} is not installed, which routes the InfiniBand fabric",
        remedy=f"run: sudo apt-get install {package}",
    )


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _tail(path: Path) -> str:
    return "\n".join(_text(path).splitlines()[-_LAST_LINES:])
