"""Who the tests of this folder run `emu` as."""

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
