"""Hops over switches in a lab on the exact clock: the demo's incast with PFC.

    h1 ═══ shim ═══ Open vSwitch ═══ shim ═══ h2        for each packet, data and ACKs, of a run

The time is that from the start of the emulation to the results of both processes, without building
the lab. Baseline: Open vSwitch alone (hop.py), with frames of the same size. To reach: half of its
speed, though packets cross a veth from and to a NIC as well, and both processes agree on every
window of emulated time.

Open vSwitch takes most of the time. It is woken about once a window, for four or five packets of
this run, and then visits all ports of all switches, with memory for 32 packets at each.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

from emu.bench.hop import MeasureOpenVswitch, hop_spec, processor_ns
from emu.bench.in_lab import in_lab
from emu.bench.native import compiled
from emu.bench.row import Row, Target, side_by_side
from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job
from emu.lab.ipc.setup import ExactDone
from emu.lab.lab_plan import LabRequest
from emu.lab.observation_file import read_observation
from emu.lab.processes import wait_for_all
from emu.lab.session import JobResult, open_session, start
from emu.lab.supervisor import Supervisor
from emu.measure.raw_counters import CounterTable
from emu.spec.load import load_spec
from emu.spec.scenario import spec_from_json

TARGET = Target(0.5)
_SPEC = Path(__file__).parents[2] / "topologies/incast.emu.yml"
_VARIANT = "roce-pfc"
_FRAME_BYTES = 4200
_FRAMES_ALONE = 20_000


@message
class ExactRate:
    hops: int
    """Packets that switches sent."""
    seconds: float
    windows: int
    """Stretches of emulated time, of each process."""
    processor_ns_per_hop: dict[str, float]


@message
class MeasureExact(Job[ExactRate]):
    spec: str
    out: str = "/"


def measure(*, quick: bool) -> list[Row]:
    spec = load_spec(_SPEC, ("capture=[]",)).variants()[_VARIANT].to_json()
    alone, through = [], []
    with compiled() as library:
        for _ in range(1 if quick else 5):
            job = MeasureOpenVswitch(hop_spec(), str(library), _FRAMES_ALONE)
            alone.append(in_lab(job).by_size[_FRAME_BYTES].frames_per_second)
            through.append(in_lab(MeasureExact(spec)))
    return [
        side_by_side(
            "hop in a lab on the exact clock",
            "hops/s",
            [run.hops / run.seconds for run in through],
            alone,
            TARGET,
            through=[asdict(run) for run in through],
        )
    ]


def job(job: MeasureExact, supervisor: Supervisor) -> JobResult:
    """A run, from the start of emulated time to the results."""
    request = LabRequest(spec_from_json(job.spec), job.out, 1, workload=True, exact=True)
    session = open_session(request, supervisor)
    assert session.rnic is not None
    before = {name: processor_ns(pid) for name, pid in session.workers.items()}
    began = time.monotonic()
    start(session)
    done = wait_for_all([session.shim, session.rnic], ExactDone, lambda _: None)
    seconds = time.monotonic() - began
    spent = {name: processor_ns(pid) - before[name] for name, pid in session.workers.items()}
    (file,) = session.shim.take_files()
    ports = read_observation(file).ports
    assert isinstance(ports, CounterTable)
    hops = int(ports.counter("tx_packets").sum())
    rate = ExactRate(hops, seconds, done[0].windows, {n: ns / hops for n, ns in spent.items()})
    return rate, []
