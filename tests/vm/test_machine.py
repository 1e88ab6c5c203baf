"""Errors of a machine that does not boot. These tests boot nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.vm import machine
from tests.vm.machine import ROOT, Machine

_REFUSAL = "initramfs is needed, and no busybox was found"


def test_a_failed_boot_shows_the_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the console's last lines, which mostly show the cause."""
    programs = tmp_path / "programs"
    programs.mkdir()
    runner = programs / "virtme-run"
    runner.write_text(f"#!/bin/sh\nseq 1 100 >&2\necho '{_REFUSAL}' >&2\nexit 1\n")
    runner.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setattr(machine, "unpacked", lambda folder: folder / "boot" / "a" / "vmlinuz")
    with pytest.raises(RuntimeError, match="the machine has ended with 1") as ended:
        Machine(tmp_path / "vm").__enter__()
    lines = str(ended.value).splitlines()
    assert lines[-1].strip() == _REFUSAL
    assert len(lines) == 21


def test_the_machines_packages_are_provisioned() -> None:
    """virtme-ng builds its initramfs around a static busybox."""
    script = (ROOT / "vagrant" / "provision.sh").read_text()
    listed = script.partition("vm_packages=(")[2].partition(")\n\n")[0]
    assert {"qemu-system-x86", "busybox-static"} <= set(listed.split())
