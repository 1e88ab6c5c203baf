"""The Python API for scripts and notebooks: run a spec, read a run back, look at its figures.

    import emu

    run = emu.run("topologies/incast.emu.yml", set={"switches.ecn.kmin": "50KB"})
    run.flows.sort_values("end_ns")
    run.series("queue").plot()
    again = emu.load(run.folder)

Tables are pandas frames. The names of their columns end in the unit (`start_ns`, `goodput_bps`,
`queue_bytes`), but for counters, which keep the names that operators know;
`run.ports.attrs["units"]` has theirs. Times are emulated.

    spec.py           Spec: a spec from keys
    frames.py         tables of a recording
    runs.py           run() and load(), and the Run that they return
    sweeps.py         sweep(), and the Sweep that it returns
    bench.py          bench_report(), and the BenchReport that it returns
    tuning.py         tune(), and the Tuning that it returns
    sensitivities.py  sensitivity(), and the Sensitivity that it returns
    decisions.py      decide(), and the Decision that it returns

`emu` itself names them. They are imported when they are used, so that commands start quickly.
"""

from emu.scripting.bench import BenchReport, bench_report
from emu.scripting.decisions import Decision, decide
from emu.scripting.runs import Run, load, run
from emu.scripting.sensitivities import Sensitivity, sensitivity
from emu.scripting.spec import Spec
from emu.scripting.sweeps import Sweep, sweep
from emu.scripting.tuning import Tuning, tune

__all__ = [
    "BenchReport",
    "Decision",
    "Run",
    "Sensitivity",
    "Spec",
    "Sweep",
    "Tuning",
    "bench_report",
    "decide",
    "load",
    "run",
    "sensitivity",
    "sweep",
    "tune",
]
