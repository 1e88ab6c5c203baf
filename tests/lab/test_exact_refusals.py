"""A machine that cannot run a lab on the exact clock: the error says what to use instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.user import User, may_be_anybody

SPEC = """
fabric: roce
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}
switches: {pfc: {}}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 10KB}]
"""
INSTEAD = "; or use --clock virtual, which needs no lab and gives the same results\n"


def refusal(user: User) -> str:
    """The error of a run, which ends with exit code 3."""
    spec = user.home / "pair.emu.yml"
    spec.write_text(SPEC)
    ended = user.run_emu("run", spec, "--clock", "exact", "--quiet")
    assert ended.code == 3, ended
    return ended.err


def test_without_namespaces(myself: User) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    somebody = replace(myself, prefix=(*myself.prefix, *inside))
    remedy = "sysctl -w user.max_net_namespaces=15000"
    says = f"this machine does not let you make namespaces; {remedy}{INSTEAD}"
    assert refusal(somebody) == says


@pytest.mark.skipif(not may_be_anybody(), reason="needs root, to give up a capability")
def test_without_the_right_to_make_interfaces(myself: User) -> None:
    """As in a container without CAP_NET_ADMIN."""
    drop = ("setpriv", "--inh-caps=-net_admin", "--bounding-set=-net_admin")
    says = refusal(replace(myself, prefix=(*drop, *myself.prefix)))
    assert says.startswith("namespace ")
    assert says.endswith(f"Operation not permitted; run as root, or run `emu check`{INSTEAD}")
