"""An emulator of RoCEv2 and InfiniBand fabrics for AI clusters, packet by packet.

For scripts and notebooks, `emu.run`, `emu.load`, `emu.sweep`, `emu.tune`, `emu.sensitivity`,
`emu.decide`, `emu.bench_report`, `emu.Spec` and the classes that they return are those of
`emu.scripting`. They are imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emu.scripting import (
        BenchReport,
        Decision,
        Run,
        Sensitivity,
        Spec,
        Sweep,
        Tuning,
        bench_report,
        decide,
        load,
        run,
        sensitivity,
        sweep,
        tune,
    )

__version__ = "0.1.0"

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'emu' has no attribute {name!r}")
    from emu import scripting

    return getattr(scripting, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
