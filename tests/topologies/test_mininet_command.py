"""Options of Mininet's own command beside `--link emu`, parsed by Mininet's own parser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from mininet.topo import Topo

from emu.errors import UsageError
from emu.lab.mininet_command import EmulatedLink, load_command, refuse_the_impossible, spec_of


@pytest.fixture(scope="module")
def command() -> Any:
    return load_command(Path(shutil.which("mn") or pytest.skip("needs mininet")))


def _parsed(command: Any, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The options that Mininet gives to `validate`, after its search for controllers."""
    runner = object.__new__(command.MininetRunner)
    monkeypatch.setattr("sys.argv", ["mn", *words])
    runner.parseArgs()
    runner.options.controller = runner.options.controller or ["none"]
    return runner.options


@pytest.mark.parametrize(
    "words",
    [
        ["--switch", "lxbr"],
        ["--switch", "ovsbr,stp=1"],
        ["--switch", "user"],
        ["--host", "cfs"],
        ["--controller", "remote,ip=10.1.1.1"],
        ["--ipbase", "192.168.0.0/16"],
        ["--listenport", "7000"],
        ["--mac"],
        ["--pin"],
        ["--xterms"],
        ["--innamespace"],
        ["--nat"],
        ["--cluster", "one,two"],
    ],
    ids=lambda words: words[0],
)
def test_unsupported_options_are_refused_by_name(
    command: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=rf"^{words[0]}[ :].*leave it out"):
        refuse_the_impossible(_parsed(command, words, monkeypatch))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--switch", "ovs"],
        ["--controller", "none"],
        ["--arp", "--wait", "--nolistenport"],
        ["--ipbase", "10.0.0.0/8"],
        ["--test", "pingall", "--verbosity", "output"],
    ],
    ids=" ".join,
)
def test_options_without_effect_are_accepted(
    command: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_the_impossible(_parsed(command, words, monkeypatch))


def test_lossy_link_is_refused() -> None:
    """Mininet's own links accept a loss; a cable from the command line has only a rate and a
    delay."""
    topo = Topo()
    host, switch = topo.addHost("h1"), topo.addSwitch("s1")
    topo.addLink(host, switch, bw=100, delay="1ms", loss=10)
    with pytest.raises(UsageError, match=r"link of h1 and s1 has loss=10"):
        spec_of(topo, EmulatedLink())
