"""Saving and loading a recording; unusable files are named."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.errors import EmuError
from emu.measure.recording import NO_MACHINE, MachineSeries, Recording
from emu.measure.records import Deadlock
from emu.measure.requests import Requests
from emu.report.store import SERIES_FILE, SUMMARY_FILE, load_recording, save_recording
from emu.report.summary import SUMMARY_SCHEMA, summarise
from tests.support.synthetic import FAULTS, INCONCLUSIVE, four_fabrics, machine_series


@pytest.fixture
def recording() -> Recording:
    return replace(
        four_fabrics()[0].recording,
        fidelity=INCONCLUSIVE,
        faults=FAULTS,
        deadlocks=(Deadlock(100_000, 3, ("s1:s2", "s2:s1")),),
        notes=("the shim marks: eBPF cannot be loaded",),
        totals=dict.fromkeys(four_fabrics()[0].summary["totals"], 3),
    )


def test_a_loaded_recording_equals_the_saved_one(tmp_path: Path, recording: Recording) -> None:
    """All fields and samples are equal, and captures are in the recording's folder."""
    captures = {port: tmp_path / "run" / path.name for port, path in recording.captures.items()}
    one = np.array([0])
    requests = Requests(traffic=("incast",), of=one, start_ns=one + 1, end_ns=one + 2)
    machine = machine_series()
    recording = replace(recording, captures=captures, requests=requests, machine=machine)
    save_recording(recording, tmp_path / "run")
    loaded = load_recording(tmp_path / "run")
    arrays: dict[str, Any] = {"series": recording.series, "requests": requests, "machine": machine}
    assert replace(loaded, **arrays) == recording
    for name, saved in arrays.items():
        again = getattr(loaded, name)
        for field in fields(saved):
            np.testing.assert_array_equal(getattr(saved, field.name), getattr(again, field.name))


def test_virtual_clock_samples_exclude_the_machine(tmp_path: Path, recording: Recording) -> None:
    """The files of a virtual run are the same on every machine."""
    save_recording(replace(recording, clock="virtual"), tmp_path)
    with np.load(tmp_path / SERIES_FILE) as arrays:
        assert not {field.name for field in fields(MachineSeries)} & set(arrays.files)
    loaded = load_recording(tmp_path)
    assert loaded.machine is NO_MACHINE
    assert not [name for name in summarise(loaded)["fidelity"] if "wall" in name]


def test_saving_twice_gives_the_same_bytes(tmp_path: Path, recording: Recording) -> None:
    """The files hold neither the date nor memory addresses."""
    for name in ("a", "b"):
        save_recording(recording, tmp_path / name)
    for file in (SUMMARY_FILE, SERIES_FILE):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The error names the file and the remedy."""
    with pytest.raises(EmuError, match=r"series\.npz: not the recording of a run .*--out"):
        load_recording(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": "other/9"}', '{"schema": 1'])
def test_an_invalid_summary_is_refused(tmp_path: Path, recording: Recording, text: str) -> None:
    """The error names the file, whatever its content."""
    save_recording(recording, tmp_path)
    (tmp_path / SUMMARY_FILE).write_text(text)
    with pytest.raises(EmuError, match=r"summary\.json: not the recording of a run"):
        load_recording(tmp_path)


def test_another_schema_is_refused(tmp_path: Path, recording: Recording) -> None:
    """A document of a later version is not interpreted."""
    save_recording(recording, tmp_path)
    file = tmp_path / SUMMARY_FILE
    file.write_text(file.read_text().replace(SUMMARY_SCHEMA, "emu.summary/2"))
    with pytest.raises(EmuError, match=r"schema 'emu\.summary/2', wanted 'emu\.summary/1'"):
        load_recording(tmp_path)


def test_damaged_samples_are_refused(tmp_path: Path, recording: Recording) -> None:
    """A truncated file gives an error with its name."""
    save_recording(recording, tmp_path)
    file = tmp_path / SERIES_FILE
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(EmuError, match=r"series\.npz: not the recording of a run"):
        load_recording(tmp_path)
