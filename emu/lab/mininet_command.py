"""Mininet's own command in a lab: the job `mn`, and what `emu/mn.py` hands over to that command.

    mn ─▶ emu/mn.py ─▶ emu mn ─▶ a lab, pid 1: mn once more ─▶ emu/mn.py ─▶ customs()
                                                 │
                                                 ▼  net = Mininet(topo, link=...)
                                           spec of that topology ─▶ shim, Open vSwitch

Mininet knows its topology only when its command is well under way. So the whole command
runs in a lab that is still empty, and what it takes for the class `Mininet` builds the
fabric there. That lab is as any other: it ends with the command, however that ends, and
nothing is left.

Words of the command line that ask for what this fabric is not are refused: whoever asks
for a Linux bridge must not be given Open vSwitch.
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
"""What of a spec holds for any topology."""
_LINK_KEYS = ["slowdown", "spec"]
_OF_A_LINK = {"bw", "delay", "node1", "node2", "port1", "port2"}
"""What a topology's link may say; the rest would be done by Mininet's own links."""
_SWITCHES = ("default", "ovs", "ovsk", "ovsbr")
_WITHOUT = {
    "xterms": "no terminals are opened; `h1 COMMAND` at the prompt runs any program on h1",
    "innamespace": "every switch is in the lab's namespaces already",
    "mac": "a host's MAC is its address after 02:00, 02:00:0a:00:00:01 for 10.0.0.1",
    "pin": "a host is not one processor's; its NIC is the shim's",
    "nat": "nothing leads out of a lab",
    "cluster": "a lab is on one machine",
}
"""Options of Mininet's command that are off unless given -> why they stay so."""

_lab: list[_MininetLab] = []
"""The lab that this process, pid 1 of it, is in."""


def run_mininet(job: RunMininet, supervisor: Supervisor) -> JobResult:
    """The job `mn`: the words of the command line as they were typed, to their end."""
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
    except Exception as error:  # all that Mininet itself raises
        raise UsageError(f"mn: {error}") from error
    return Done(), []


def load_command(command: Path) -> Any:
    """Mininet's command as a module, which has done nothing yet."""
    loader = SourceFileLoader("mn", str(command))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def customs() -> Json:
    """The names that the custom file defines, and Mininet's command then uses for its own."""
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
    """Mininet asks this about its command line, as parsed, before anything is built.

    `--arp`, `--wait`, `--twait` and `--nolistenport` want what is so in any case. Raises
    UsageError.
    """
    for told in _impossible(options):
        raise UsageError(f"{told} (with --link emu)")


def _impossible(options: Any) -> Iterator[str]:
    if options.switch not in _SWITCHES:
        yield (
            f"--switch {options.switch}: switches are the emulator's, and Open vSwitch with its "
            "routes forwards for them; leave it out, or choose with plane: in --link emu,spec=FILE"
        )
    if options.host != "proc":
        yield f"--host {options.host}: hosts are plain processes; leave it out"
    if not {"default", "none"} >= set(options.controller):
        yield (
            f"--controller {options.controller[0]}: routes are set when the fabric is built, and "
            "no controller is asked; leave it out"
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
        "--clean: a lab leaves nothing; for Mininet's own leavings run sudo mn --clean"
    )


class EmulatedLink:
    """What `--link emu,KEY=VALUE` asks for. The cables themselves are in the shim."""

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
            f"--link emu,slowdown={given}: is no number from 1 to 1000000; write slowdown=10"
        ) from None


class _MininetLab:
    """The lab of one command, empty at first."""

    def __init__(self, out: str, supervisor: Supervisor) -> None:
        self._out = out
        self._supervisor = supervisor
        self._session: Session | None = None

    def build(self, *, topo: Topo, link: type[EmulatedLink], **_options: Any) -> FabricNet:
        """Stands in for the class `Mininet`: the net of this topology, up and running.

        Of the other options `refuse_the_impossible` has seen those that are not so here.
        """
        spec = spec_of(topo, link())
        assert spec.slowdown != "auto"
        request = LabRequest.interactive_lab(spec, self._out, spec.slowdown)
        self._session = open_session(request, self._supervisor)
        start(self._session)
        return self._session.lab.net

    def prompt(self, _net: FabricNet, script: str | None = None) -> None:
        """Stands in for Mininet's class `CLI`."""
        assert self._session is not None
        own_prompt(self._session, script)


def spec_of(topo: Topo, link: EmulatedLink) -> Spec:
    """A fabric like `topo`, whose links tell `bw` in Mbit/s and `delay`. Raises SpecError."""
    from emu.spec.model import load_spec, spec_from_mapping  # slow, and no other lab reads files

    told: Json = {"slowdown": 1}
    if link.spec is not None:
        whole = load_spec(Path(link.spec)).to_mapping()
        told |= {key: whole[key] for key in _FABRIC_KEYS if key in whole}
    if link.slowdown is not None:
        told["slowdown"] = link.slowdown
    elif told["slowdown"] == "auto":
        told["slowdown"] = 1
    told |= {"name": "mn", "topology": _graph(topo)}
    return spec_from_mapping(told, source="mn --topo", folder=Path())


def _graph(topo: Topo) -> Json:
    for a, b, info in topo.links(withInfo=True):
        for name in (name for name, value in info.items() if value and name not in _OF_A_LINK):
            raise UsageError(
                f"mn --topo: the link of {a} and {b} has {name}={info[name]}, and with --link emu "
                "a link has bw and delay alone; leave it out"
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
