"""`python -m emu._build [release|sanitize|undefined|threads|analyze|coverage]`: brings the compiled core up to date.

The release is what runs use, so the eBPF marker, the preloaded libraries and Python's bytecode come
with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from emu._build import bytecode, core, marker, preload


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m emu._build", description=__doc__)
    parser.add_argument("variant", nargs="?", choices=core.VARIANTS, default=core.RELEASE.name)
    variant = core.VARIANTS[parser.parse_args().variant]
    try:
        for made in _build(variant):
            print(f"built {made}", file=sys.stderr)
    except core.BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _build(variant: core.Variant) -> Iterator[Path]:
    """Builds what is out of date, and yields it."""
    module = core.target(variant)
    if core.build(variant, module):
        yield module
    yield from preload.build(variant, Path() if variant is core.RELEASE else variant.folder)
    if variant is not core.RELEASE:
        return
    if marker.build(marker.PLACE):
        yield marker.PLACE
    bytecode.build()


if __name__ == "__main__":
    sys.exit(main())
