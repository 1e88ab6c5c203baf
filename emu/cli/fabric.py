"""The fabric of a spec, for verbs with their own traffic: `emu perf`, `emu nccl`.

The spec's traffic is left out before the spec is validated, so that mistakes there do not matter.
The verb then adds its own (see `emu.spec.from_code.changed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emu.errors import UsageError
from emu.spec.model import Spec, load_spec, spec_from_text

_LEFT_OUT = {"traffic": "[]", "verify": "[]", "compare": "{}", "capture": "[]", "faults": "[]"}
_CHOSEN = ("time_limit", "payload")
"""By the verb."""


def load_fabric(
    path: Path | None, default: str, settings: Sequence[str], *, verb: str, faults: bool = False
) -> Spec:
    """The spec at `path`, or in `default`, without its traffic; its faults stay if asked for.

    Raises SpecError, and UsageError for settings that could have no effect.
    """
    left_out = {key: none for key, none in _LEFT_OUT.items() if not (faults and key == "faults")}
    _refuse_without_effect(settings, (*left_out, *_CHOSEN), verb)
    every = (*settings, *(f"{key}={none}" for key, none in left_out.items()))
    spec = (
        load_spec(path, every)
        if path
        else spec_from_text(default.encode(), source=verb, settings=every)
    )
    if spec.hosts.stack == "tcp":
        raise UsageError(
            f"hosts.stack: tcp, but emu {verb} measures RDMA; add --set hosts.stack=rdma"
        )
    return spec


def _refuse_without_effect(settings: Sequence[str], replaced: Sequence[str], verb: str) -> None:
    for setting in settings:
        key = setting.partition("=")[0]
        section = key.partition(".")[0]
        if section in replaced:
            raise UsageError(f"--set {key}: emu {verb} has its own {section}; leave it out")
