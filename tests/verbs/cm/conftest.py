"""The fixtures of this folder: users that run `emu`."""

from tests.support.lab_fixtures import lab_machine, myself, open_folder, tmp_path

__all__ = ["lab_machine", "myself", "open_folder", "tmp_path"]
