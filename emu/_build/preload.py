"""Compiles the libraries that programs of others load before their own (LD_PRELOAD).

For ibsim's clients: time-outs of management packets, and the seed of OpenSM's random numbers. For
Open vSwitch: less work for each packet. For programs on hosts: the verbs of their NIC.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from emu._build import core

_SOURCES = {
    Path("emu/subnet/preload.so"): ("mad_layer.c", "random_seed.c"),
    Path("emu/lab/ovs_preload.so"): ("ovs_idle_ports.c", "ovs_packet_memory.c"),
    Path("emu/verbs/emu_verbs.so"): tuple(
        f"library/{path.name}" for path in sorted((core.ROOT / "emu/verbs/library").glob("*.c"))
    ),
}
"""Where a library lies in the package, and where developers find it -> what it is made from."""


def build(variant: core.Variant, root: Path) -> Iterator[Path]:
    """Brings the libraries below `root` up to date, and yields those that were not.

    A relative path starts at the root of the source tree. Raises BuildError.
    """
    for place, sources in _SOURCES.items():
        objects = core.compile_all(variant, [place.parent / name for name in sources])
        library = root / place
        if core.is_stale(library, objects):
            core.link_library(variant, objects, library)
            yield library
