"""`emu wireshark`: the files that it installs in a user's Wireshark, and
those that it leaves alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from emu.errors import UsageError
from emu.wireshark.install import install, uninstall


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("WIRESHARK_EXTCAP_DIR", str(tmp_path / "extcap"))
    return tmp_path


def test_uninstall_removes_all_installed_files() -> None:
    """This also holds after two installations."""
    profile, program, kept = install()
    assert (profile / "colorfilters").is_file()
    assert program.stat().st_mode & 0o111
    assert kept == install()[2] == []
    assert uninstall() == []
    assert not profile.exists()
    assert not program.exists()
    assert uninstall() == []


def test_an_earlier_version_of_a_file_is_replaced() -> None:
    """The file is unchanged since an earlier `emu wireshark`."""
    profile, *_ = install()
    text = (profile / "colorfilters").read_text()
    listed = profile / "installed-by-emu.json"
    (profile / "colorfilters").write_text("old")
    digest = hashlib.sha256(b"old").hexdigest()
    listed.write_text(json.dumps(json.loads(listed.read_text()) | {"colorfilters": digest}))
    assert install()[2] == []
    assert (profile / "colorfilters").read_text() == text


def test_files_changed_by_the_user_stay() -> None:
    """They are neither replaced nor removed, and neither are the user's own files."""
    profile, *_ = install()
    (profile / "preferences").write_text("mine")
    (profile / "decode_as_entries").write_text("mine")
    assert install()[2] == [profile / "preferences"]
    assert uninstall() == [profile / "decode_as_entries", profile / "preferences"]
    assert (profile / "preferences").read_text() == "mine"
    assert (profile / "decode_as_entries").read_text() == "mine"


def test_an_existing_profile_stays(home: Path) -> None:
    """A user may have a profile named `emu`."""
    own = home / "config/wireshark/profiles/emu"
    own.mkdir(parents=True)
    (own / "preferences").write_text("mine")
    (own / "colorfilters").symlink_to("preferences")
    install()
    uninstall()
    assert {path.name for path in own.iterdir()} == {"preferences", "colorfilters"}
    assert (own / "preferences").read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_a_foreign_extcap_stays(kind: str, home: Path) -> None:
    """The error names it, and nothing is installed or removed."""
    program = home / "extcap/emu"
    program.parent.mkdir()
    (home / "mine").write_text("mine")
    if kind == "file":
        program.write_text("mine")
    else:
        program.symlink_to(home / "mine")
    for act in (install, uninstall):
        with pytest.raises(UsageError, match="extcap/emu: not made by `emu wireshark`"):
            act()
    assert program.read_text() == (home / "mine").read_text() == "mine"
    assert not (home / "config").exists()
