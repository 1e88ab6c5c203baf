"""The shipped fabric of two tenants: what is for the other one reaches nobody, and is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec
from emu.subnet.sm_sweeps import manage
from tests.support.needs import need

SPEC = Path(__file__).parents[2] / "topologies" / "tenants.emu.yml"


@pytest.mark.parametrize(
    ("variant", "unfinished", "counted"),
    [
        ("roce", {"across"}, {"vlan_no_route": "leaf1:h2"}),
        (
            "wrong-tag",
            {"across", "first"},
            {"vlan_no_route": "leaf1:h2", "vlan_discard": "leaf1:h1"},
        ),
        ("ib", {"across"}, {"PortXmitConstraintErrors": "leaf2:h8"}),
    ],
)
def test_tenants_are_parted(
    tmp_path: Path, variant: str, unfinished: set[str], counted: dict[str, str]
) -> None:
    spec = load_spec(SPEC).variants()[variant]
    topology = spec.topology.build()
    subnet = None
    if spec.fabric == "ib":
        need("OpenSM", "ibsim")
        subnet = manage(spec, topology, tmp_path / "subnet")
    run = RunFacts(spec.name, VirtualRunner(subnet).run(spec, out=tmp_path), spec, topology)
    assert {flow.traffic for flow in run.flows if not flow.completed} == unfinished
    ports = run.summary["ports"]
    for counter, place in counted.items():
        assert [port for port, own in ports.items() if own[counter]] == [place]
