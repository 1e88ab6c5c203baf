"""Settings with the same name in a spec and in a struct of the core.

A setting that needs no translation is a field in the spec's model and a field of the same name in
the core's struct. No other place lists it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from emu._core import ffi
from emu.spec.base import Model


def copy_settings(struct: Any, settings: Model) -> None:
    """Copies every number of `settings` into the field of the same name, if there is one.

    A setting that is None leaves its field at 0.
    """
    for name in _shared_names(ffi.typeof(struct), type(settings)):
        value = getattr(settings, name)
        if isinstance(value, int):
            setattr(struct, name, value)


@cache
def _shared_names(struct: Any, settings: type[Model]) -> tuple[str, ...]:
    fields = dict((struct.item if struct.kind == "pointer" else struct).fields)
    return tuple(name for name in settings.model_fields if name in fields)
