"""The packages that only sweeps need."""

from __future__ import annotations

from importlib.util import find_spec

from emu.errors import HostError

PACKAGES = ("dask", "distributed", "pyarrow", "scipy")


def need_packages() -> None:
    """Raises HostError if one is missing, with how to install them."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise HostError(
            f"sweeps need {', '.join(missing)}",
            remedy="in emu's source, `make setup` installs them, or `python -m pip install "
            "--editable '.[sweep]'`",
        )


def has_dashboard() -> bool:
    """Whether Dask can show its dashboard, which needs bokeh."""
    return find_spec("bokeh") is not None
