"""The fixtures of this folder: users that run `emu`."""

from tests.support.lab_fixtures import lab_machine, myself, open_folder, ordinary, tmp_path, user

__all__ = ["lab_machine", "myself", "open_folder", "ordinary", "tmp_path", "user"]
