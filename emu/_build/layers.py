"""`python -m emu._build.layers`: checks that the C core's includes point downwards only.

Each folder of `emu/core` is a layer or shares one. A file includes files of its own folder
and of the layers below its own:

    driver                 frames come and go by sockets and TUN interfaces
    api                    a whole fabric, as Python sees it
    fault     observe      what goes wrong on purpose; counters, samples, deadlocks
    flow_model             rates of messages without packets
    uverbs                 the verbs of programs in other processes
    switch    nic          the machines; neither knows the other
    link                   ports, lines, flow control, captures
    headers                the formats of packets
    sim                    clock, frames, memory, random numbers
    counters               tables of all counters; they make the structs of the layers above

Within the folders of FREE_OF_CYCLES no file needs itself by way of others, where x.c and x.h
count as one file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from emu._build.core import CORE, ROOT, inputs

LAYERS = (
    ("counters",),
    ("sim",),
    ("headers",),
    ("link",),
    ("switch", "nic"),
    ("fault", "observe", "flow_model", "uverbs"),
    ("api",),
    ("driver",),
)
_LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def main() -> int:
    wrong = [line for path in inputs() for line in _wrong_includes(path)]
    wrong += [line for folder in _LEVEL for line in _cycle(folder)]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def _wrong_includes(path: Path) -> Iterator[str]:
    """What is wrong with the includes of one file of the core, a line each."""
    text = (ROOT / path).read_text()
    folder = path.relative_to(CORE).parts[0]
    if folder not in _LEVEL:
        yield f"{path}: {CORE / folder} is in no layer; add it to LAYERS in {__name__}"
        return
    for match in _INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        other = Path(match[1]).parts[0]
        if not (ROOT / CORE / match[1]).is_file():
            yield f"{path}:{line}: there is no {CORE / match[1]}; paths start at {CORE}"
        elif other != folder and _LEVEL.get(other, len(LAYERS)) >= _LEVEL[folder]:
            yield f"{path}:{line}: {folder} must not include {match[1]}: {other} is not below it"


def _cycle(folder: str) -> Iterator[str]:
    """The first cycle of includes among the files of a folder, if there is one."""
    included: dict[str, set[str]] = {}
    for path in inputs():
        if path.parent == CORE / folder:
            names = map(Path, _INCLUDE.findall((ROOT / path).read_text()))
            others = {name.stem for name in names if name.parts[0] == folder}
            included.setdefault(path.stem, set()).update(others - {path.stem})
    try:
        TopologicalSorter(included).prepare()
    except CycleError as error:
        yield f"{CORE / folder}: a cycle of includes: {' includes '.join(reversed(error.args[1]))}"


if __name__ == "__main__":
    sys.exit(main())
