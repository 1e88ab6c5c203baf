"""The exact clock: labs with real frames whose results are those of the virtual clock.

Each test compares all counters, flows, samples and captures of a run on both.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from platform import machine

import pytest

from emu.errors import FabricError, UsageError
from emu.lab.ipc.jobs import RunExact, RunResult
from emu.lab.namespace import run_in_lab
from emu.runtime import runner_on
from emu.subnet.sm_sweeps import swept
from emu.wire.reader import open_capture
from tests.support.impatient_part import OTHER_SECONDS
from tests.support.lossy_inside import LOSES
from tests.support.needs import need
from tests.support.same_runs import differences, spec_of
from tests.support.user import User

TEXT = """
name: same
topology:
  kind: leaf-spine
  spines: 2
  leaves: 2
  hosts_per_leaf: 2
  links: {host: {rate: 100Gbit, delay: 300ns}, fabric: {rate: 100Gbit, delay: 500ns}}
switches: {pfc: {}}
hosts: {nic: {timeout: 6}}
capture: [all]
traffic: [{name: in, pattern: incast, from: h2-h4, to: h1, op: write, size: 150KB}]
"""
"""Two flows cross the spines, one does not."""

SUPPORT = Path(__file__).parents[1] / "support"
ROCE, IB = "fabric=roce", "fabric=ib"
MARKING = ("switches.ecn={kmin: 10KB, kmax: 60KB, pmax: 20%}", "hosts.nic.cc=dcqcn")
MIXED = "topology.links.fabric={rate: 400Gbit, delay: 500ns}"

FABRICS = {
    "own-forwarding": (ROCE, "plane=shim"),
    "pfc": (ROCE,),
    "lossy": (ROCE, "switches.pfc=off", "switches.buffer=60KB"),
    "pauses-802.3x": (ROCE, "switches.pfc={frames: pause}"),
    "marked-by-ebpf": (ROCE, *MARKING, "switches.ecn.marker=ebpf"),
    "marked-by-the-shim": (ROCE, *MARKING, "switches.ecn.marker=shim"),
    "cut-through": (ROCE, "switches.switching=cut-through"),
    "cut-through-to-faster-links": (ROCE, "switches.switching=cut-through", MIXED),
    "no-latency": (ROCE, "switches.latency=0ns"),
    "spraying": (ROCE, "switches.routing={kind: spray}"),
    "adaptive": (ROCE, "switches.routing={kind: adaptive}", MIXED),
    "infiniband": (IB,),
    "infiniband-lanes": (IB, "switches.credits={vls: 4, buffer: 20KiB}"),
    "infiniband-stored": (IB, "switches.switching=store-and-forward"),
}

FAULTS = {
    "loss": (ROCE, "loss: {cable: leaf1:h2, every: 7}"),
    "delay": (ROCE, "at: 5us, for: 20us, delay: {cable: h2:leaf1, by: 3us}"),
    "reordering": (ROCE, "reordering: {cable: leaf1:h1, by: 2us, every: 5}"),
    "corruption": (ROCE, "corruption: {cable: leaf1:h1, every: 9}"),
    "duplication": (ROCE, "duplication: {cable: h2:leaf1, every: 4}"),
    "link-down": (ROCE, "at: 10us, for: 15us, link-down: {cable: leaf1:h2}"),
    "link-flap": (ROCE, "at: 5us, for: 40us, link-flap: {cable: h3:leaf2, period: 9us, down: 2us}"),
    "short-flap": (
        ROCE,
        "at: 5us, for: 20us, link-flap: {cable: leaf1:h1, period: 2us, down: 200ns}",
    ),
    "delayed-and-cut": (
        ROCE,
        "at: 2us, delay: {cable: leaf1:h2, by: 4us}",
        "at: 12us, for: 3us, link-down: {cable: leaf1:h2}",
    ),
    "ib-cut-from-the-start": (IB, "for: 10us, link-down: {cable: h2:leaf1}"),
    "ib-cut-as-it-returns": (
        IB,
        "at: 5us, for: 9us, link-flap: {cable: leaf1:h2, period: 8us, down: 3us}",
        "at: 6us, for: 3us, link-flap: {cable: leaf1:h2, period: 2us, down: 1us}",
    ),
    "spine-cut": (ROCE, "at: 8us, for: 60us, link-down: {cable: leaf2:spine1}"),
    "switch-down": (ROCE, "at: 8us, for: 60us, switch-down: {switch: spine2}"),
    "pause-storm": (ROCE, "at: 5us, for: 50us, pause-storm: {host: h1, priority: 3}"),
    "slow-receiver": (ROCE, "slow-receiver: {host: h1, rate: 20Gbit}"),
    "wrong-ecn": (ROCE, "at: 8us, for: 20us, wrong-ecn: {switch: leaf1, kmin: 40KB, kmax: 41KB}"),
    "wrong-map": (ROCE, "at: 8us, for: 20us, wrong-map: {switch: leaf1, dscp: {26: 0}}"),
    "small-headroom": (ROCE, "at: 5us, small-headroom: {port: 'leaf1:h2', headroom: 5KB}"),
    "ib-duplication": (IB, "duplication: {cable: h2:leaf1, every: 4}"),
    "lost-credits": (IB, "flow-control: {cable: leaf1:h1, every: 3}"),
    "ib-link-down": (IB, "at: 10us, for: 15us, link-down: {cable: leaf1:h2}"),
    "ib-spine-cut": (IB, "at: 8us, for: 60us, link-down: {cable: leaf2:spine1}"),
    "ib-slow-receiver": (IB, "slow-receiver: {host: h1, rate: 20Gbit}"),
}


@pytest.mark.parametrize("settings", FABRICS.values(), ids=FABRICS)
def test_a_fabric_gives_the_same_as_virtual(
    lab_machine: None, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    assert differences(spec_of(TEXT, *settings), tmp_path) == []


@pytest.mark.parametrize("settings", FAULTS.values(), ids=FAULTS)
def test_faults_give_the_same_as_virtual(
    lab_machine: None, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    """Those of cables to hosts are in either process, by the direction."""
    fabric, *faults = settings
    entries = ", ".join(f"{{{fault}}}" for fault in faults)
    marking = MARKING if "wrong-ecn" in entries else ()
    spec = spec_of(TEXT, fabric, *marking, f"faults=[{entries}]", "time_limit=3ms")
    assert differences(spec, tmp_path) == []


def test_a_packet_may_leave_a_switch_where_it_came_in(lab_machine: None, tmp_path: Path) -> None:
    """Those that are at a spine when it has lost the link ahead go back, and take the other one."""
    spec = spec_of(
        TEXT,
        "traffic=[{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 150KB}]",
        "switches.routing={kind: pinned, convergence: 5us, "
        "paths: {pairs.h1-h3: spine1, pairs.h2-h4: spine1}}",
        "faults=[{at: 10us, link-down: {cable: leaf2:spine1}}]",
    )
    assert differences(spec, tmp_path) == []


def test_captures_of_hosts_are_the_same(lab_machine: None, tmp_path: Path) -> None:
    spec = spec_of(TEXT, "capture=[h1:leaf1, leaf1:h1, h3:leaf2]")
    assert differences(spec, tmp_path) == []


def test_a_capture_of_an_idle_port_has_its_fabrics_format(
    lab_machine: None, tmp_path: Path
) -> None:
    """The NICs write it, and have no other capture to go by."""
    cut = "faults=[{link-down: {cable: h3:leaf2}}]"
    spec = spec_of(TEXT, IB, "capture=[leaf1:h1, h3:leaf2]", "traffic.0.from=[h2]", cut)
    assert differences(spec, tmp_path) == []
    idle, busy = sorted((tmp_path / "exact").iterdir())
    assert (idle.name, busy.name) == ("h3-leaf2.erf", "leaf1-h1.erf")
    assert idle.stat().st_size < busy.stat().st_size


def test_scale_up_links_give_the_same(lab_machine: None, tmp_path: Path) -> None:
    spec = spec_of(
        TEXT,
        "topology={kind: rail, servers: 2, rails: 2, spines: 1}",
        "hosts={gpus: 2, scale_up: {rate: 900Gbit, latency: 200ns}}",
        "traffic=[{name: sum, pattern: all-reduce, algorithm: ring, among: all, size: 100KB}]",
    )
    assert differences(spec, tmp_path) == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("traffic.0={name: in, pattern: pair, from: h1, to: h2, size: 1MB, stack: tcp}",), "real"),
        (("payload=elided",), "--clock virtual"),
        (("switches.ecn={marker: red}",), "--clock real"),
    ],
)
def test_what_needs_another_clock_is_refused(settings: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        runner_on("exact").refuse(spec_of(TEXT, *settings))


REORDERS = """
tc qdisc add dev h2-eth0 root handle 1: htb default 10
tc class add dev h2-eth0 parent 1: classid 1:10 htb rate 10gbit
tc class add dev h2-eth0 parent 1: classid 1:20 htb rate 8kbit burst 5k cburst 5k
tc filter add dev h2-eth0 parent 1: protocol all u32 match u8 0x04 0x0f at {last} flowid 1:20
"""
"""The second packet with such a PSN waits for seconds; later ones do not."""
CHANGES = """
tc qdisc add dev h2-eth0 clsact
tc filter add dev h2-eth0 egress bpf direct-action obj {program} sec tc
"""
FRAME_OF_H2 = r"frame \d+ from h2:leaf1 \(RC_RDMA_WRITE_\w+ of flow in.h2-h1, PSN \d+, \d+ bytes, "


def run_lossy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses: str, *settings: str
) -> RunResult:
    """A run in which this command is carried out first; its first word is the namespace."""
    monkeypatch.setenv(LOSES, loses)
    spec = spec_of(TEXT, *settings)
    job = RunExact(spec.to_json(), str(tmp_path), swept(spec, spec.topology.build()))
    result, _ = run_in_lab(job, on_progress=lambda _: None, module="tests.support.lossy_inside")
    return result


@pytest.mark.parametrize(
    ("loses", "says"),
    [
        (
            "h2 ip link set h2-eth0 down",
            r"the kernel refused to send a frame at leaf1:h2 \(RC_RDMA_WRITE_\w+ of flow in.h2-h1, "
            r"PSN \d+, \d+ bytes\): Network is down",
        ),
        (
            "lab ovs-ofctl add-flow leaf1 priority=1000,actions=drop",
            r"Open vSwitch lost a packet: the one that came in at leaf1:h\d at \d+ns "
            r"\(RC_RDMA_WRITE_\w+ of flow in.h\d-h1, PSN \d+, \d+ bytes\) did not return",
        ),
    ],
    ids=["refused", "lost-in-ovs"],
)
def test_a_lost_frame_fails_the_run_and_is_named(
    lab_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses: str, says: str
) -> None:
    """The time that a frame has is a second here, less than the other process waits."""
    monkeypatch.setenv(OTHER_SECONDS, "60")
    with pytest.raises(FabricError, match=says):
        run_lossy(tmp_path, monkeypatch, loses, ROCE)


@pytest.mark.parametrize(("fabric", "last"), [(ROCE, 39), (IB, 19)], ids=["roce", "ib"])
def test_a_reordered_frame_fails_the_run_and_is_named(
    lab_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabric: str, last: int
) -> None:
    """`last`: where the last byte of the PSN is, behind the Ethernet header."""
    script = tmp_path / "reorders"
    script.write_text(REORDERS.format(last=last))
    says = f"this machine lost or reordered a frame: a later one came in instead of {FRAME_OF_H2}"
    with pytest.raises(FabricError, match=says):
        run_lossy(tmp_path, monkeypatch, f"h2 sh -e {script}", fabric)


def test_a_changed_frame_fails_the_run_and_is_named(
    lab_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bit in the middle of the payload."""
    need("eBPF marker")
    program, script = tmp_path / "changes.bpf.o", tmp_path / "changes"
    source = SUPPORT / "changes.bpf.c"
    compiler = ["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine()}-linux-gnu"]
    subprocess.run([*compiler, "-c", str(source), "-o", str(program)], check=True)
    script.write_text(CHANGES.format(program=program))
    with pytest.raises(FabricError, match=f"this machine changed a frame: {FRAME_OF_H2}"):
        run_lossy(tmp_path, monkeypatch, f"h2 sh -e {script}", ROCE)


def test_frames_of_programs_cross_the_fabric_and_are_noted(
    lab_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result then says that another run may differ."""
    script = tmp_path / "pings"
    script.write_text("ping -c 3 -i 0.02 10.0.0.1 >/dev/null &")
    result = run_lossy(tmp_path, monkeypatch, f"h3 sh {script}", ROCE, "traffic.0.size=2MB")
    (note,) = result.notes
    assert re.match(r"\d+ frames came from programs or the kernel, .* another run may give", note)
    pings = [has_ping(Path(result.captures[port])) for port in ("leaf2:h3", "leaf1:h1")]
    assert all(pings), pings


def has_ping(capture: Path) -> bool:
    """Whether any frame is an ICMP one."""
    with open_capture(capture) as records:
        return any(record.data[23:24] == b"\x01" for record in records)


def test_an_ordinary_user_runs_it(user: User, tmp_path: Path) -> None:
    path = tmp_path / "same.emu.yml"
    path.write_text(TEXT)
    assert user.run_emu("run", path, "--clock", "exact", "--quiet").code == 0
