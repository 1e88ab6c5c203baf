"""The `emu` process of a lab under test: `python -m tests.support.lab_owner REQUEST [terminal]`.

REQUEST is a JSON object. Prints every progress text and the result as lines; an
error goes to stderr and into the exit code, as with `emu`.
"""

from __future__ import annotations

import json
import sys

from emu.errors import EmuError, ExitCode
from emu.lab.ipc.messages import Request
from emu.lab.namespace import run_in_lab


def main() -> int:
    request = Request(**json.loads(sys.argv[1]))
    try:
        result, _ = run_in_lab(
            request,
            on_progress=lambda told: print(told.text, flush=True),
            terminal="terminal" in sys.argv[2:],
            module="tests.support.stub_inside",
        )
    except EmuError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    print(json.dumps(result))
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
