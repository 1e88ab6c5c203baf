"""The `emu` process of a lab under test: `python -m tests.support.lab_owner JOB [terminal]`.

JOB is a message of `stub_jobs.py` on one line. Prints every progress text and the result as lines;
an error goes to stderr and into the exit code, as with `emu`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from emu.errors import EmuError, ExitCode
from emu.lab.ipc.codec import from_line
from emu.lab.ipc.jobs import Job
from emu.lab.namespace import run_in_lab
from tests.support import stub_jobs


def main() -> int:
    job = from_line(sys.argv[1].encode())
    assert isinstance(job, Job), stub_jobs
    try:
        result, _ = run_in_lab(
            job,
            on_progress=lambda progress: print(progress.text, flush=True),
            terminal="terminal" in sys.argv[2:],
            module="tests.support.stub_inside",
        )
    except EmuError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    print(json.dumps(asdict(result)))
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
