"""A NIC's files in a folder: all are there, and no reader sees half of one."""

from __future__ import annotations

from pathlib import Path

from emu.lab.rdma_sysfs.counters import HostCounters
from emu.lab.rdma_sysfs.nic import Nic, PortState, changing_files, ethernet_nic, fixed_files, links
from emu.lab.rdma_sysfs.tree import SysfsTree
from tests.support.lab_fabrics import clos

XMIT = "class/infiniband/emu_0/ports/1/counters/port_xmit_data"
UP = PortState(up=True)


def nic() -> Nic:
    return ethernet_nic(clos(1), "h1", "0")


def sent(words: int) -> PortState:
    return PortState(up=True, counters=HostCounters({"PortXmitData": words}, {}))


def test_a_tree_has_all_files_and_links(tmp_path: Path) -> None:
    root = tmp_path / "h1"
    SysfsTree(root, nic(), UP)
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    assert found == {*fixed_files(nic()), *changing_files(nic(), UP), *links(nic())}
    assert (root / XMIT).read_text() == "0\n"
    assert (root / XMIT).stat().st_mode & 0o777 == 0o444


def test_an_update_replaces_only_what_has_changed(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path, nic(), UP)
    assert tree.update(UP) == 0
    assert tree.update(sent(words=12)) == 1
    assert (tmp_path / XMIT).read_text() == "12\n"


def test_a_reader_keeps_the_text_that_it_has_opened(tmp_path: Path) -> None:
    """A file that were written in place would be empty for a moment, or have a mix of both."""
    tree = SysfsTree(tmp_path, nic(), sent(words=999))
    with (tmp_path / XMIT).open() as opened:
        tree.update(sent(words=1000))
        assert opened.read() == "999\n"
    assert (tmp_path / XMIT).read_text() == "1000\n"
