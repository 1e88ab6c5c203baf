"""A NIC's files in a folder, of which those that change are replaced, never rewritten in place.

A reader sees the old text or the new one: a file is renamed over the one before.
"""

from __future__ import annotations

from pathlib import Path

from emu.lab.rdma_sysfs.nic import Nic, PortState, changing_files, fixed_files, links

_READ_ONLY = 0o444


class SysfsTree:
    """The tree of one host. One thread may use it at a time."""

    def __init__(self, root: Path, nic: Nic, state: PortState) -> None:
        """Writes all files under `root`, which must not exist yet. Raises OSError."""
        self._root, self._nic = root, nic
        self._written: dict[str, str] = {}
        files = fixed_files(nic) | changing_files(nic, state)
        targets = links(nic)
        for folder in {(root / path).parent for path in (*files, *targets)}:
            folder.mkdir(parents=True, exist_ok=True)
        for path, target in targets.items():
            (root / path).symlink_to(target)
        self._write(files)

    def update(self, state: PortState) -> int:
        """Replaces the files whose text has changed. Returns how many. Raises OSError."""
        return self._write(changing_files(self._nic, state))

    def _write(self, files: dict[str, str]) -> int:
        changed = {path: text for path, text in files.items() if self._written.get(path) != text}
        for path, text in changed.items():
            self._replace(path, text)
            self._written[path] = text
        return len(changed)

    def _replace(self, path: str, text: str) -> None:
        new = self._root / ".new"  # outside the folders that programs see
        new.write_text(text)
        new.chmod(_READ_ONLY)
        new.replace(self._root / path)
