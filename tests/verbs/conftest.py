"""The fixtures of this folder, most of them users that run `emu`."""

from tests.support.lab_fixtures import (
    lab_machine,
    myself,
    open_folder,
    ordinary,
    tmp_path,
    user,
    with_tun,
)

__all__ = ["lab_machine", "myself", "open_folder", "ordinary", "tmp_path", "user", "with_tun"]
