"""What setuptools calls to make `emu._core` and what lies beside it: for a wheel, or in place."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.build_ext import build_ext

from emu._build import core, marker, preload


class BuildCore(build_ext):
    """Leaves compiling to the modules beside this one, which compile only what changed."""

    def build_extension(self, ext: object) -> None:
        module = Path(self.get_ext_fullpath(core.MODULE))
        core.build(core.RELEASE, module)
        list(preload.build(core.RELEASE, module.parents[1]))
        marker.build(module.parents[1] / marker.PLACE)

    def copy_extensions_to_source(self) -> None:
        """For an editable install."""
        super().copy_extensions_to_source()
        list(preload.build(core.RELEASE, Path()))
        marker.build(marker.PLACE)

    def get_source_files(self) -> list[str]:
        return [str(path) for path in core.inputs()]
