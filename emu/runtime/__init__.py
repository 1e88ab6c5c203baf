"""Runs of a spec, on one clock or another: each clock has a file with its `Runner`. The flow model,
which has no packets, has one too.

runner_on("virtual").run(spec, out=folder)
"""

from emu.runtime.runner import Runner, runner_of, runner_on

__all__ = ["Runner", "runner_of", "runner_on"]
