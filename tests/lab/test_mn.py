"""Mininet's own command, `mn --custom emu/mn.py --link emu`, on the emulated fabric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import Outside
from tests.support.user import ROOT, Ended, User, wait

WORDS = """\
h1 ping -c 1 -W 5 h4
link leaf1 h1 down
h1 ping -c 1 -W 1 h4
link leaf1 h1 up
h1 until ping -c 1 -W 1 h4 > /dev/null; do :; done
link leaf1 h3 down
h1 iperf3 --server --daemon --port 5001
h1 iperf3 --server --daemon --port 5002
h2 iperf3 -c 10.0.0.1 --connect-timeout 5000 -p 5001 -ub 60M -l 1400 -S 0x68 -t 2 >/dev/null 2>&1 &
h3 iperf3 -c 10.0.0.1 --connect-timeout 5000 -p 5002 -ub 60M -l 1400 -S 0x68 -t 1
pause
py net.iperf(seconds=1)
"""
"""Switches use a cable again when they have new routes, which takes longer on a busy machine. At a
slowdown of 30, a link of 1 Gbit/s carries 33 Mbit/s. 0x68 is DSCP 26, priority 3."""
LOSSLESS = """\
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}
switches: {pfc: {priorities: [3], xoff: 48KB, xon: 32KB}}
"""


def mn(user: User, *words: str) -> Ended:
    """The result of Mininet's command, after which nothing of the lab is left."""
    before = Outside.now(user)
    ended = wait(user.start("mn", "--custom", str(ROOT / "emu" / "mn.py"), *words))
    assert Outside.now(user) == before
    return ended


def test_pingall_crosses_our_cables_without_root(user: User) -> None:
    """Mininet's default test on a fabric with loops, which learning switches cannot handle."""
    ended = mn(user, "--topo", "leaf_spine,2,2,1", "--link", "emu", "--test", "pingall")
    assert ended.code == 0, ended.err
    assert "0% dropped (2/2 received)" in ended.out + ended.err


def test_mininets_commands_act_on_the_fabric(myself: User) -> None:
    """A cable that is down carries nothing until it is up, a lossless
    class pauses, and iperf runs."""
    folder = myself.home.parent
    (folder / "words").write_text(WORDS)
    (folder / "lossless.emu.yml").write_text(LOSSLESS)
    link = f"emu,slowdown=30,spec={folder}/lossless.emu.yml"
    ended = mn(
        myself, "--topo", "leaf_spine,1,2,2", "--link", link, "--pre", str(folder / "words"),
        "--test", "none",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    printed = ended.out + ended.err
    assert re.findall(r"(\d+)% packet loss", printed) == ["0", "100"]
    assert "no cable joins leaf1 and h3" in printed
    assert re.search(r"^spine1:leaf2 +3 +0 +[1-9]", printed, re.MULTILINE), printed
    (received, sent) = map(float, re.findall(r"'([\d.]+) Mbits/sec'", printed)[:2])
    assert 5 < received <= 34, "what 1 Gbit/s is at a slowdown of 30, or a little less"
    assert sent >= received


@pytest.mark.parametrize(
    ("topo", "link", "told"),
    [
        ("leaf_spin,2,2,2", "emu", "mn: Invalid topo name leaf_spin"),
        ("leaf_spine,2,2,2", "emu,slow=3", "did you mean 'slowdown'?"),
        ("leaf_spine,2,2,2", "emu,spec=nowhere.emu.yml", "nowhere.emu.yml"),
        ("linear,2,2", "emu,slowdown=0", "--link emu,slowdown=0: not a number from 1"),
        ("linear,2,2", "emu,slowdown=abc", "--link emu,slowdown=abc: not a number from 1"),
        ("linear,2,2", "emu,10", "--link emu,10: which key is that?"),
    ],
)
def test_wrong_options_are_named(myself: User, topo: str, link: str, told: str) -> None:
    """The error has one line, and the lab is gone."""
    ended = mn(myself, "--topo", topo, "--link", link, "--test", "none")
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--switch", "lxbr"], "--switch lxbr: the emulator makes the switches"),
        (["--nat"], "--nat: a lab has no connection to the outside"),
        (["--clean"], "--clean: a lab leaves nothing"),
    ],
)
def test_unsupported_mininet_options_are_refused(myself: User, words: list[str], told: str) -> None:
    """The command fails before anything is built."""
    ended = mn(myself, "--link", "emu", "--test", "none", *words)
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_the_custom_file_adds_topologies_for_other_links(tmp_path: Path) -> None:
    """With another link type the file only names the topologies."""
    custom: dict[str, Any] = {}
    path = ROOT / "emu" / "mn.py"
    exec(compile(path.read_text(), str(path), "exec"), custom)
    assert set(custom["topos"]) >= {"leaf_spine", "fat_tree", "rail"}
    assert "Mininet" not in custom
