"""What setuptools calls to make `emu._core`, for a wheel or an editable install."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.build_ext import build_ext

from emu._build import core


class BuildCore(build_ext):
    """Leaves compiling to `core`, which compiles only what changed."""

    def build_extension(self, ext: object) -> None:
        core.build(core.RELEASE, Path(self.get_ext_fullpath(core.MODULE)))

    def get_source_files(self) -> list[str]:
        return [str(path) for path in core.inputs()]
