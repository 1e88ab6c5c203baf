"""Labs with a management network, for tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.user import Ended, User, wait

SPEC = """
name: managed
fabric: roce
plane: shim
seed: 3
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 1}
switches: {pfc: {}, ecn: {kmin: 20KB, kmax: 80KB, pmax: 20%}}
traffic: [{name: in, pattern: incast, from: "h2", to: h1, op: write, size: 150KB}]
management: on
"""
NODES = ("h1", "h2", "spine1", "leaf1", "leaf2")


def in_lab(user: User, node: str, *command: str, management: bool = False) -> Ended:
    """Runs a command on a node to its end."""
    where = ("--management", node) if management else (node,)
    return user.run_emu("exec", *where, "--", *command)


def said(user: User, node: str, *command: str, management: bool = False) -> str:
    """What a command that succeeds prints."""
    ended = in_lab(user, node, *command, management=management)
    assert ended.code == 0, ended
    return ended.out


def python(user: User, node: str, code: str, *, management: bool = False) -> str:
    """What a Python program prints on a node."""
    return said(user, node, sys.executable, "-c", code, management=management)


def reachability(user: User, *words: str) -> dict[str, Any]:
    """The measured matrix."""
    ended = user.run_emu("reachability", "--json", "--wait", "1", *words)
    assert ended.code in (0, 1), ended
    measured: dict[str, Any] = json.loads(ended.out)
    assert measured["as_allowed"] == (ended.code == 0)
    return measured


def wrong_cells(measured: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Source, target and service of the cells that are not as the spec allows."""
    return {
        (cell["source"], cell["target"], cell["service"])
        for cell in measured["cells"]
        if cell["reached"] not in (None, cell["expected"])
    }


def reached_cells(measured: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (cell["source"], cell["target"], cell["service"])
        for cell in measured["cells"]
        if cell["reached"]
    }


def link_counters(user: User, node: str, *, management: bool = False) -> dict[str, Any]:
    """The kernel's counters of every interface, but the loopback, where a node's programs run."""
    links = json.loads(said(user, node, "ip", "-j", "-s", "link", management=management))
    return {one["ifname"]: one["stats64"] for one in links if one["ifname"] != "lo"}


def management_counters(user: User) -> dict[str, Any]:
    """The same of every port of the management switch."""
    return link_counters(user, "mgmt_switch")


def fabric_counters(user: User) -> Any:
    """Every counter of the fabric, and its time."""
    ended = user.run_emu("counters", "--json")
    assert ended.code == 0, ended
    return json.loads(ended.out)


@contextmanager
def staying(user: User, node: str) -> Iterator[int]:
    """A process on a node of the management network. Yields its number in the lab."""
    process = user.emu("exec", node, "--", "sh", "-c", "echo $$; read line")
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        wait(process)
