"""The build backend of pyproject.toml: setuptools, as it is.

It is named here, inside the tree, so that the tree is on the import path while
setuptools runs and it finds `emu._build.command`.
"""

from setuptools.build_meta import *  # noqa: F403
