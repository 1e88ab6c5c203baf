"""The daemons of a switch: zebra, bgpd and, if its configuration asks for it, bfdd.

They run in the switch's network namespace, but share the lab's files, so each has its own folder
for sockets, pid files and logs. All get their configuration from vtysh, as on a switch whose
frr.conf is integrated.

Source: FRR's user guide, Basic Setup; zebra(8), bgpd(8), vtysh(1).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from emu.errors import FabricError, HostError
from emu.lab.command import environment, is_installed, run
from emu.lab.frr.clock import MachineClock
from emu.lab.frr.session_log import SessionLog
from emu.lab.netns import entered

FOLDER = Path("/run/frr")
"""In the lab's own /run."""
_LIBRARY = Path("/usr/lib/frr")
"""Debian's folder of daemons, which is in no PATH."""
_GROUPS = FOLDER / "group"
_GROUP = "frrvty"
"""Debian's group of those who may use vtysh."""
ENVIRONMENT = {"VTYSH_HISTFILE": str(FOLDER / ".history")}
"""For programs on a switch: vtysh would keep its history in the user's home."""
_AT_START = "hostname {switch}\nlog timestamp precision 6\nlog file {log} informational\n"
"""What a daemon reads before vtysh gives it its frr.conf."""
_SECONDS_TO_START = 30.0
_SECONDS_BETWEEN_LOOKS = 0.005
_LAST_LINES = 8


class Daemons:
    """The FRR of one switch."""

    def __init__(self, switch: str, namespace: int, conf: str, clock: MachineClock) -> None:
        """`namespace`: a process or thread in the switch's network namespace; `conf`: the text of
        its frr.conf; `clock`: that of its timers."""
        self.switch = switch
        self._clock = clock
        self.folder = FOLDER / switch
        self._namespace = namespace
        self._conf = conf
        self.log = SessionLog(self.folder / "bgpd.log")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.folder.mkdir(parents=True)
        (self.folder / "frr.conf").write_text(conf)
        (self.folder / "vtysh.conf").touch()  # vtysh complains if there is none

    def start_zebra(self) -> None:
        """Starts the daemon that all others talk to."""
        self._start("zebra")

    def start_others(self) -> None:
        """Starts bgpd, and bfdd if the configuration asks for BFD. Raises FabricError.

        They begin when zebra answers: otherwise they would try again only after 10 s.
        """
        self._wait_for("zebra", self.folder / "zserv.api")
        for name in ("bgpd", *(["bfdd"] if asks_for_bfd(self._conf) else [])):
            self._start(name)

    def _start(self, name: str) -> None:
        folder = self.folder
        at_start = folder / f"{name}.conf"
        at_start.write_text(_AT_START.format(switch=self.switch, log=folder / f"{name}.log"))
        own = ["--bfdctl", f"{folder}/bfdd.sock"] if name == "bfdd" else []
        with (folder / f"{name}.out").open("wb") as output, entered(self._namespace):
            self._processes[name] = subprocess.Popen(
                [
                    *(str(_LIBRARY / name), "-u", "root", "-g", "root"),
                    *("-A", "127.0.0.1", "-P", "0", "-F", profile_of(self._conf)),
                    *("-z", f"{folder}/zserv.api", "--vty_socket", str(folder)),
                    *("-i", f"{folder}/{name}.pid", "-f", str(at_start)),
                    *own,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._clock.variables},
            )

    def configure(self) -> None:
        """Waits until the daemons answer, and gives them their frr.conf. Raises FabricError."""
        for name in self._processes:
            self._wait_for(name, self.folder / f"{name}.vty")
        done = self._vtysh(["-f", str(self.folder / "frr.conf")])
        if done.returncode != 0 or "% " in done.stdout:
            self.refuse_dead()
            raise FabricError(
                f"FRR refused the configuration of {self.switch}:\n{refusals(done.stdout)}"
            )

    def _wait_for(self, name: str, socket: Path) -> None:
        deadline = time.monotonic() + _SECONDS_TO_START
        while not socket.exists():
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise self._failed(f"{name} did not start")
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def has_shut_down(self, interface: str) -> bool:
        """Whether its configuration shuts the session on an interface down."""
        return (
            re.search(rf"^ *neighbor {interface} shutdown\b", self._conf, re.MULTILINE) is not None
        )

    @property
    def has_bfd(self) -> bool:
        """Whether bfdd runs."""
        return "bfdd" in self._processes

    def bfd_is_up(self) -> bool:
        """Whether all its sessions of BFD are up. Raises FabricError."""
        done = self._vtysh(["-c", "show bfd peers json"])
        try:
            return all(peer["status"] == "up" for peer in json.loads(done.stdout))
        except (ValueError, KeyError):
            raise self._failed("vtysh does not show the sessions of BFD") from None

    def advertisement_interval_s(self) -> int:
        """How long a neighbour may have to wait for a change, by the configuration."""
        found = re.findall(
            r"^ *neighbor \S+ advertisement-interval (\d+)", self._conf, re.MULTILINE
        )
        return max(map(int, found), default=0)

    def dead(self) -> list[str]:
        """The daemons that have ended."""
        return [name for name, one in self._processes.items() if one.poll() is not None]

    def refuse_dead(self) -> None:
        """Raises FabricError if a daemon has ended."""
        for name in self.dead():
            raise self._failed(f"{name} has ended")

    def _vtysh(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = ["vtysh", "--vty_socket", str(self.folder), "--config_dir", str(self.folder)]
        return subprocess.run(
            [*command, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**environment(), **ENVIRONMENT},
        )

    def _failed(self, what: str) -> FabricError:
        logs = (
            self.folder / f"{name}.{ending}"
            for name in self._processes
            for ending in ("log", "out")
        )
        lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
        said = "\n".join(lines[-_LAST_LINES:])
        return FabricError(f"{self.switch}: {what}; the last lines of FRR's logs:\n{said}")


def prepare_files() -> None:
    """Makes the folder of all daemons, and lets the lab's root, which is the only user of a lab
    without root, be in the group that FRR's programs ask for. Raises FabricError."""
    FOLDER.mkdir()
    _GROUPS.write_text(f"root:x:0:\n{_GROUP}:x:0:root\n")
    run(["mount", "-n", "--bind", str(_GROUPS), "/etc/group"])


def places_of(switch: str) -> dict[str, str]:
    """Where a program on a switch expects FRR's files -> where they are, in the order in which to
    mount them."""
    own = str(FOLDER / switch)
    return {"/etc/group": str(_GROUPS), "/etc/frr": own, str(FOLDER): own}


def version() -> str:
    """FRR's version, as zebra prints it. Raises HostError, FabricError."""
    require_frr()
    first = run([str(_LIBRARY / "zebra"), "--version"]).splitlines()[0]
    return f"FRR {first.split()[-1]}"


def asks_for_bfd(conf: str) -> bool:
    """Whether a frr.conf asks for BFD."""
    return re.search(r"^ *(neighbor \S+ )?bfd\b", conf, re.MULTILINE) is not None


def profile_of(conf: str) -> str:
    """The set of defaults that a frr.conf names, `traditional` if it names none."""
    found = re.search(r"^frr defaults (datacenter|traditional)\s*$", conf, re.MULTILINE)
    return found[1] if found else "traditional"


def refusals(said: str) -> str:
    """The lines in which vtysh says what it refuses."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "\n".join(line for line in lines if "%" in line or line.startswith("line")) or said


def why_missing() -> str:
    """What of FRR is not installed; empty if nothing is."""
    programs = {name: (_LIBRARY / name).exists() for name in ("zebra", "bgpd", "bfdd")}
    programs["vtysh"] = is_installed("vtysh")
    absent = [name for name, exists in programs.items() if not exists]
    return f"{', '.join(absent)} not installed" if absent else ""


def require_frr() -> None:
    """Raises HostError if FRR is not installed."""
    if missing := why_missing():
        raise HostError(
            f"FRR, which control_plane: bgp needs: {missing}", remedy="sudo apt-get install frr"
        )
