"""One run on either clock, with a line on stderr that tells how it gets on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from emu.cli.say import say
from emu.errors import UsageError
from emu.measure.recording import Recording
from emu.output_dir import check_links, is_written_as_it_is
from emu.report.progress import ProgressLine
from emu.resources import keep_freed_memory
from emu.spec.model import Spec
from emu.subnet import Subnet
from topologies.graph import Topology


def record(
    name: str,
    spec: Spec,
    clock: str,
    out: Path,
    *,
    progress: TextIO | None = None,
    quiet: bool = False,
    subnet: Subnet | None = None,
) -> tuple[Recording, Spec, Topology]:
    """Runs the spec under this name. Captures are written into `out`.

    Its progress is written to `progress`, stderr unless given; nowhere when `quiet`.
    `subnet`: what OpenSM has made of the fabric (see `subnet_of`), where that is known; on the
    virtual clock.

    Raises UsageError, before anything runs, when nothing can be written there.
    """
    refuse_unwritable(out)
    topology = spec.topology.build()
    with ProgressLine(name, None if quiet else progress or sys.stderr) as line:
        if clock == "real":
            from emu.lab.live import run_live  # Mininet is needed only for a live lab

            recording = run_live(spec, topology, out=out, on_progress=line.update, say=say)
        else:
            recording = _run_virtual(spec, topology, subnet or subnet_of([spec]), out, line)
    return recording, spec, topology


def refuse_unwritable(out: Path, option: str = "--out") -> None:
    """Raises UsageError when nothing can be written in the folder that the option means.

    Makes nothing: a run that is killed leaves no empty folder.
    """
    try:
        check_links(out.absolute())
        there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        TemporaryFile(dir=there).close()
    except OSError as error:
        raise UsageError(
            f"{out}: nothing can be written there ({error.strerror}); choose another {option}"
        ) from None


def refuse_unwritable_file(path: Path, option: str) -> None:
    """The same for a file. One that is written to as it is (`/dev/stdout`) needs no room there."""
    if not is_written_as_it_is(path):
        refuse_unwritable(path.parent, option)


def subnet_of(specs: Sequence[Spec]) -> Subnet | None:
    """What OpenSM makes of the fabric that these specs share; None of one that is not InfiniBand.

    Raises HostError, FabricError.
    """
    from emu.subnet.sm_sweeps import swept

    first, *others = specs
    return swept(first, first.topology.build(), *others)


def _run_virtual(
    spec: Spec, topology: Topology, subnet: Subnet | None, out: Path, line: ProgressLine
) -> Recording:
    from emu.runtime.virtual import run_virtual

    keep_freed_memory()
    return run_virtual(spec, topology, subnet=subnet, out=out, on_progress=line.update)
