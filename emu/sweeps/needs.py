"""The packages that only sweeps and searches need."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from emu.errors import HostError

PACKAGES = ("dask", "distributed", "pyarrow", "scipy")


def need_packages(what: str = "sweeps need", further: Sequence[str] = ()) -> None:
    """Raises HostError if one of them, or of `further` packages, is missing, with how to install
    them. `what`: who needs them, for the error."""
    missing = [name for name in (*PACKAGES, *further) if find_spec(name) is None]
    if missing:
        raise HostError(
            f"{what} {', '.join(missing)}",
            remedy="in emu's source, `make setup` installs them, or `python -m pip install "
            "--editable '.[sweep]'`",
        )


def has_dashboard() -> bool:
    """Whether Dask can show its dashboard, which needs bokeh."""
    return find_spec("bokeh") is not None
