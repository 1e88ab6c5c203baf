"""Servers with several NICs, one rail for each."""

from __future__ import annotations

from functools import cache

from emu.measure.observation import Observation
from tests.support.small_fabrics import spec_of, started

GPUS = 4


def rails(servers: int, gpus: int = GPUS) -> str:
    return f"""
topology:
  kind: rail
  servers: {servers}
  rails: {gpus}
  spines: {gpus}
  links: {{host: {{rate: 400Gbit, length: 3m}}, fabric: {{rate: 400Gbit, length: 10m}}}}
switches: {{buffer: 64MB, pfc: {{xoff: 512KB, xon: 448KB}}}}
hosts: {{gpus: {gpus}}}
payload: elided
"""


@cache
def observed(servers: int, entry: str, *settings: str, gpus: int = GPUS) -> Observation:
    job = f"traffic: [{{name: job, among: all, {entry}}}]\n"
    with started(spec_of(rails(servers, gpus) + job, *settings)) as run:
        while not run.finished and run.now_ns < 100_000_000:
            run.run_until(run.now_ns + 100_000)
        return run.observe()
