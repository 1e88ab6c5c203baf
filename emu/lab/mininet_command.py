"""Runs Mininet's own command in a lab: the job `mn`, and the names that `emu/mn.py` gives it.

    mn ─▶ emu/mn.py ─▶ emu mn ─▶ a lab, pid 1: mn once more ─▶ emu/mn.py ─▶ custom_names()
                                                 │
                                                 ▼  net = Mininet(topo, link=...)
                                           spec of that topology ─▶ shim, Open vSwitch

Mininet's command learns its topology only while it runs. So the whole command runs in a lab that
is still empty, and a replacement of the class `Mininet` builds the fabric there. The lab ends with
the command, and leaves nothing behind.

Options that this fabric cannot honour are refused: a user who asks for a Linux bridge must not
get Open vSwitch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from mininet.topo import Topo

from emu.errors import EmuError, FabricError, SpecError, UsageError
from emu.lab.ipc.codec import Json
from emu.lab.ipc.jobs import RunMininet
from emu.lab.ipc.messages import Done
from emu.lab.lab_plan import LabRequest
from emu.lab.net import FabricNet
from emu.lab.session import JobResult, Session, open_session, start
from emu.lab.shell import own_prompt
from emu.lab.supervisor import Supervisor
from emu.spec.diagnostic import unknown_name
from emu.spec.quantities import as_slowdown
from emu.spec.scenario import Spec
from topologies.mininet_topo import BPS_PER_MBPS, MININET_RATE_BPS, all_topos

_FABRIC_KEYS = ("fabric", "plane", "seed", "slowdown", "switches", "hosts", "subnet")
"""The sections of a spec that do not depend on the topology."""
_LINK_KEYS = ["slowdown", "spec"]
_OF_A_LINK = {"bw", "delay", "node1", "node2", "port1", "port2"}
"""The parameters of a topology's link that are supported; only Mininet's own links have others."""
_SWITCHES = ("default", "ovs", "ovsk", "ovsbr")
_WITHOUT = {
    "xterms": "no terminals are opened; `h1 COMMAND` at the prompt runs any program on h1",
    "innamespace": "every switch is in the lab's namespaces already",
    "mac": "a host's MAC is its address after 02:00, 02:00:0a:00:00:01 for 10.0.0.1",
    "pin": "hosts are not pinned to processors; the shim emulates their NICs",
    "nat": "a lab has no connection to the outside",
    "cluster": "a lab is on one machine",
}
"""Options of Mininet's command that are off by default -> why they cannot be turned on."""

_lab: list[_MininetLab] = []
"""The lab whose pid 1 is this process."""


def run_mininet(job: RunMininet, supervisor: Supervisor) -> JobResult:
    """The job `mn`: runs Mininet's command with the words that the user typed."""
    _lab.append(_MininetLab(job.out, supervisor))
    sys.argv = list(job.words)
    try:
        load_command(Path(sys.argv[0])).MininetRunner()
    except SpecError as error:
        raise UsageError(str(error)) from None
    except (EmuError, EOFError, KeyboardInterrupt):
        raise
    except SystemExit as end:
        if end.code:
            raise FabricError(f"mn ended with {end.code}") from None
    except Exception as error:  # Mininet raises exceptions of any type
        raise UsageError(f"mn: {error}") from error
    return Done(), []


def load_command(command: Path) -> Any:
    """Mininet's command as a module. Loading it runs nothing."""
    loader = SourceFileLoader("mn", str(command))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def runs_here() -> bool:
    """Whether this process runs Mininet's command in a lab."""
    return bool(_lab)


def custom_names() -> Json:
    """The names that the custom file defines; Mininet's command uses them in place of its own."""
    (lab,) = _lab
    return {
        "topos": all_topos(),
        "LINKS": {"emu": EmulatedLink},
        "validate": refuse_the_impossible,
        "cleanup": _refuse_cleaning,
        "Mininet": lab.build,
        "CLI": lab.prompt,
    }


def refuse_the_impossible(options: Any) -> None:
    """Checks Mininet's parsed command line before anything is built.

    `--arp`, `--wait`, `--twait` and `--nolistenport` are accepted: a lab always behaves so. Raises
    UsageError.
    """
    for problem in _impossible(options):
        raise UsageError(f"{problem} (with --link emu)")


def _impossible(options: Any) -> Iterator[str]:
    if options.switch not in _SWITCHES:
        yield (
            f"--switch {options.switch}: the emulator makes the switches, Open vSwitch forwards "
            "for them; leave it out, or set plane: in --link emu,spec=FILE"
        )
    if options.host != "proc":
        yield f"--host {options.host}: hosts are plain processes; leave it out"
    if not {"default", "none"} >= set(options.controller):
        yield (
            f"--controller {options.controller[0]}: routes are set when the fabric is built, "
            "without a controller; leave it out"
        )
    if options.ipbase != "10.0.0.0/8":
        yield f"--ipbase {options.ipbase}: hosts have 10.0.0.1 and so on; leave it out"
    if options.listenport not in (None, 6654):
        yield f"--listenport {options.listenport}: switches listen nowhere; leave it out"
    for name, why in _WITHOUT.items():
        if getattr(options, name, None):
            yield f"--{name}: {why}; leave it out"


def _refuse_cleaning() -> None:
    raise UsageError(
        "--clean: a lab leaves nothing behind; to clean up after Mininet itself run sudo mn --clean"
    )


class EmulatedLink:
    """The settings of `--link emu,KEY=VALUE`. The shim emulates the cables."""

    def __init__(
        self,
        *nameless: object,
        slowdown: float | None = None,
        spec: str | None = None,
        **unknown: object,
    ) -> None:
        for word in nameless:
            raise UsageError(f"--link emu,{word}: which key is that? write slowdown=N or spec=FILE")
        for name in unknown:
            raise UsageError(f"--link emu,{name}=...: {unknown_name('key', name, _LINK_KEYS)}")
        self.slowdown = None if slowdown is None else _slowdown(slowdown)
        self.spec = spec


def _slowdown(given: object) -> float:
    try:
        return float(as_slowdown(given))
    except ValueError:
        raise UsageError(
            f"--link emu,slowdown={given}: not a number from 1 to 1000000; write slowdown=10"
        ) from None


class _MininetLab:
    """The lab of one `mn` command, empty at first."""

    def __init__(self, out: str, supervisor: Supervisor) -> None:
        self._out = out
        self._supervisor = supervisor
        self._session: Session | None = None

    def build(self, *, topo: Topo, link: type[EmulatedLink], **_options: Any) -> FabricNet:
        """Replaces the class `Mininet`. Returns the running net of this topology.

        `refuse_the_impossible` has checked the other options.
        """
        spec = spec_of(topo, link())
        assert spec.slowdown != "auto"
        request = LabRequest.interactive_lab(spec, self._out, spec.slowdown)
        self._session = open_session(request, self._supervisor)
        start(self._session)
        return self._session.lab.net

    def prompt(self, _net: FabricNet, script: str | None = None) -> None:
        """Replaces Mininet's class `CLI`."""
        assert self._session is not None
        own_prompt(self._session, script)


def spec_of(topo: Topo, link: EmulatedLink) -> Spec:
    """The spec of a fabric with a Mininet topology. Its links have `bw` in Mbit/s and `delay`.

    Raises SpecError."""
    from emu.spec.model import load_spec, spec_from_mapping  # slow; other labs do not need it

    keys: Json = {"slowdown": 1}
    if link.spec is not None:
        whole = load_spec(Path(link.spec)).to_mapping()
        keys |= {key: whole[key] for key in _FABRIC_KEYS if key in whole}
    if link.slowdown is not None:
        keys["slowdown"] = link.slowdown
    elif keys["slowdown"] == "auto":
        keys["slowdown"] = 1
    keys |= {"name": "mn", "topology": _graph(topo)}
    return spec_from_mapping(keys, source="mn --topo", folder=Path())


def _graph(topo: Topo) -> Json:
    for a, b, info in topo.links(withInfo=True):
        for name in (name for name, value in info.items() if value and name not in _OF_A_LINK):
            raise UsageError(
                f"mn --topo: the link of {a} and {b} has {name}={info[name]}, but with --link emu "
                "a link has only bw and delay; leave it out"
            )
    links = [
        {
            "between": [a, b],
            "rate": f"{info.get('bw', MININET_RATE_BPS / BPS_PER_MBPS):g}Mbit",
            "delay": info.get("delay") or "0ns",
        }
        for a, b, info in topo.links(withInfo=True)
    ]
    return {"kind": "graph", "hosts": topo.hosts(), "switches": topo.switches(), "links": links}
