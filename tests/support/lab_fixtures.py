"""Fixtures of tests in real labs: who runs `emu`, and where."""

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
from tests.support.user import User, make_user, may_be_anybody

NEEDED = ("namespaces", "veth", "mininet", "Open vSwitch", "OpenSM", "ibsim")
TUN = Path("/dev/net/tun")


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """What a lab cannot do without; and Ctrl-C, which a shell's background job is started without
    and would leave to every lab."""
    need(*NEEDED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def open_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Where everybody may go. Not in pytest's own folder, which root's next session closes to
    others. It is left to be looked at where a test has failed; nobody who has a home there is left.
    """
    folder = Path(mkdtemp(prefix="emu-lab-tests-"))
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
    """Root, then an ordinary user; where the tests are not root, only themselves."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    return make_user(tmp_path, ordinary=request.param == "user")


@pytest.fixture
def myself(tmp_path: Path, lab_machine: None) -> User:
    """Whoever runs the tests."""
    return make_user(tmp_path, ordinary=not may_be_anybody())


@pytest.fixture
def ordinary(tmp_path: Path, lab_machine: None) -> User:
    """An ordinary user."""
    return make_user(tmp_path, ordinary=True)


@pytest.fixture
def with_tun(tmp_path: Path, lab_machine: None) -> User:
    """An ordinary user, where these may open /dev/net/tun, as udev lets them; root elsewhere."""
    open_to_all = TUN.exists() and TUN.stat().st_mode & 0o006 == 0o006
    return make_user(tmp_path, ordinary=open_to_all or not may_be_anybody())
