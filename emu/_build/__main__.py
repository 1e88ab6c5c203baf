"""`python -m emu._build [release|sanitize|analyze]`: brings the compiled core up to date."""

from __future__ import annotations

import argparse
import sys

from emu._build import core


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m emu._build", description=__doc__)
    parser.add_argument("variant", nargs="?", choices=core.VARIANTS, default=core.RELEASE.name)
    variant = core.VARIANTS[parser.parse_args().variant]
    module = core.target(variant)
    try:
        built = core.build(variant, module)
    except core.BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if built:
        print(f"built {module}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
