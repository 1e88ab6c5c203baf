"""VLANs in a lab that stays up: Open vSwitch forwards, and programs' packets have no tag."""

from __future__ import annotations

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.user import User

SPEC = """
name: parted
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
vlans: {10: [h1, h3]}
traffic: [{name: f, pattern: pair, from: h1, to: h3, size: 100KB}]
slowdown: 100
"""


@pytest.mark.parametrize("plane", ["ovs", "shim"])
def test_programs_reach_hosts_of_their_vlan_alone(myself: User, plane: str) -> None:
    me = at_home(myself)

    def reaches(source: str, target: str, seconds: int) -> bool:
        ping = ("ping", "-c", "1", "-W", str(seconds), target)
        return me.run_emu("exec", source, "--", *ping).code == 0

    with lab_up(me, SPEC, "--set", f"plane={plane}"):
        assert reaches("h1", "h3", 30)
        assert reaches("h2", "h4", 30)
        assert not reaches("h1", "h4", 1)
        assert not reaches("h2", "h3", 1)
        shown = me.run_emu("counters", "leaf1:h1").out
        assert "vlan_no_route" in shown
