"""Fixtures of tests in real labs: the users that run `emu`, and their folders."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.needs import need
from tests.support.reaper import reaping
from tests.support.traces import TESTS_FOLDER
from tests.support.user import User, make_user, may_be_anybody

NEEDED = ("namespaces", "veth", "mininet", "Open vSwitch", "OpenSM", "ibsim")
TUN = Path("/dev/net/tun")


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """Skips without the requirements of a lab. Restores Ctrl-C, which is ignored in a shell's
    background job and in every lab that the job starts."""
    need(*NEEDED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def open_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that every user can enter. It is not pytest's own folder, which root's next session
    closes to others. It remains after a failed test, but no process whose home is in it."""
    folder = Path(mkdtemp(prefix=TESTS_FOLDER))
    folder.chmod(0o755)
    with reaping(folder):
        yield folder
    if not request.session.testsfailed:
        shutil.rmtree(folder)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, open_folder: Path) -> Path:
    """The test's own folder."""
    name = re.sub(r"\W+", "-", request.node.name)[:40]
    folder = Path(mkdtemp(prefix=f"{name}-", dir=open_folder))
    folder.chmod(0o755)
    return folder


@pytest.fixture(params=["root", "user"])
def user(request: pytest.FixtureRequest, tmp_path: Path, lab_machine: None) -> User:
    """Root, then an ordinary user; if the tests do not run as root, only the user who runs them."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    return make_user(tmp_path, ordinary=request.param == "user")


@pytest.fixture
def myself(tmp_path: Path, lab_machine: None) -> User:
    """The user who runs the tests."""
    return make_user(tmp_path, ordinary=not may_be_anybody())


@pytest.fixture
def ordinary(tmp_path: Path, lab_machine: None) -> User:
    """An ordinary user."""
    return make_user(tmp_path, ordinary=True)


@pytest.fixture
def with_tun(tmp_path: Path, lab_machine: None) -> User:
    """An ordinary user if every user can open /dev/net/tun, as udev allows; otherwise root."""
    open_to_all = TUN.exists() and TUN.stat().st_mode & 0o006 == 0o006
    return make_user(tmp_path, ordinary=open_to_all or not may_be_anybody())
