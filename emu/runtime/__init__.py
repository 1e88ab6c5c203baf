"""Runs of a spec, on one clock or another: each clock has a file with its `Runner`.

runner_on("virtual").run(spec, out=folder)
"""

from emu.runtime.runner import Runner, runner_on

__all__ = ["Runner", "runner_on"]
