"""Saves and loads a run as files that any tool can open.

summary.json   everything but the samples (see emu/report/summary.py)
series.npz     the samples: numpy arrays with the names of the fields of Series and Requests, and on
               the real clock also of MachineSeries
spec.json      the spec with all settings applied, which is a spec file, too

Where BGP is the control plane, there are also:

routes.json    the recorded routes that the spec names
frr/           the frr.conf of each switch, as leaf1.conf
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from emu.errors import EmuError
from emu.measure.recording import MachineSeries, Recording, Series
from emu.measure.records import (
    Deadlock,
    FailedQueuePair,
    FaultRecord,
    Fidelity,
    FlowRecord,
    JobRecord,
    StepRecord,
    SweepRecord,
)
from emu.measure.requests import Requests
from emu.output_dir import make_folder, new_file, write_text
from emu.report.run_view import RunFacts
from emu.report.summary import SUMMARY_SCHEMA, Summary, summarise, to_json
from emu.spec.route_recording import read_recording
from emu.spec.scenario import spec_from_json

T = TypeVar("T")
A = TypeVar("A", Series, Requests, MachineSeries)

SUMMARY_FILE = "summary.json"
SERIES_FILE = "series.npz"
SPEC_FILE = "spec.json"
ROUTES_FILE = "routes.json"
CONFS_FOLDER = "frr"

_NAMES = ("ports", "flows", "traffic", "losses", "cpu_users")
"""The fields that are tuples of names."""
_OF_PACKETS = ("queue_bytes", "buffer_bytes", "paused_ns", "credit_wait_ns")
"""The samples that a model without packets does not have."""
_FASTEST = 1
"""The compression level of zlib."""


def save_recording(recording: Recording, folder: Path, summary: Summary | None = None) -> None:
    """Writes both files, and makes the folder if it is missing. `summary` is the recording's
    summary, if the caller has it already."""
    make_folder(folder)
    write_text(folder / SUMMARY_FILE, to_json(summary or summarise(recording)))
    arrays = _fields_of(recording.series) | _fields_of(recording.requests)
    if not recording.is_exact:
        arrays |= _fields_of(recording.machine)
    if not recording.has_packets:
        arrays = {name: array for name, array in arrays.items() if name not in _OF_PACKETS}
    arrays |= {name: np.array(arrays[name], dtype=np.str_) for name in _NAMES if name in arrays}
    with new_file(folder / SERIES_FILE) as stream:
        _write_arrays(stream, arrays)


def _write_arrays(stream: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays like numpy.savez_compressed, which has no parameter for the compression level.
    At its level, compression takes a tenth of a large run's time."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_FASTEST) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def load_recording(folder: Path) -> Recording:
    """Reads what `save_recording` wrote. Raises an EmuError that names the file on failure."""
    series = _read(folder / SERIES_FILE, lambda path: _load_arrays(path, Series))
    requests = _read(folder / SERIES_FILE, lambda path: _load_arrays(path, Requests))
    recording = _read(folder / SUMMARY_FILE, lambda path: _load_summary(path, series, requests))
    if recording.is_exact:
        return recording
    machine = _read(folder / SERIES_FILE, lambda path: _load_arrays(path, MachineSeries))
    return replace(recording, machine=machine)


def save_run(run: RunFacts, folder: Path) -> None:
    """Writes all files, and makes the folder if it is missing."""
    save_recording(run.recording, folder, run.summary)
    spec = run.spec
    if spec.recorded_routes is not None:
        _save_routes(Path(spec.recorded_routes), folder)
        spec = spec.model_copy(update={"recorded_routes": ROUTES_FILE})
    write_text(folder / SPEC_FILE, spec.to_json() + "\n")


def _save_routes(path: Path, folder: Path) -> None:
    write_text(folder / ROUTES_FILE, path.read_text())
    make_folder(folder / CONFS_FOLDER)
    for switch, conf in read_recording(path).confs.items():
        write_text(folder / CONFS_FOLDER / f"{switch}.conf", conf)


def load_run(folder: Path) -> RunFacts:
    """Reads what `save_run` wrote. Raises an EmuError that names the file on failure."""
    recording = load_recording(folder)
    spec = _read(folder / SPEC_FILE, lambda path: spec_from_json(path.read_text(encoding="utf-8")))
    if spec.recorded_routes is not None:
        routes = (folder / spec.recorded_routes).absolute()
        spec = spec.model_copy(update={"recorded_routes": str(routes)})
    return RunFacts(recording.name, recording, spec, spec.topology.build())


def _fields_of(arrays: Series | Requests | MachineSeries) -> dict[str, Any]:
    return {field.name: getattr(arrays, field.name) for field in fields(arrays)}


def _read(path: Path, load: Callable[[Path], T]) -> T:
    try:
        return load(path)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise EmuError(
            f"{path}: not the recording of a run ({error}); give the folder `emu run --out` made"
        ) from error


def _load_arrays(path: Path, kind: type[A]) -> A:
    with np.load(path, allow_pickle=False) as arrays:
        none = np.zeros((len(arrays["time_ns"]), 0), np.int64)
        loaded: dict[str, Any] = {
            field.name: none
            if field.name in _OF_PACKETS and field.name not in arrays
            else arrays[field.name]
            for field in fields(kind)
        }
    names = {name: tuple(loaded[name].tolist()) for name in _NAMES if name in loaded}
    return kind(**loaded | names)


def _load_summary(path: Path, series: Series, requests: Requests) -> Recording:
    summary = json.loads(path.read_text(encoding="utf-8"))
    if summary["schema"] != SUMMARY_SCHEMA:
        raise ValueError(f"schema {summary['schema']!r}, wanted {SUMMARY_SCHEMA!r}")
    return Recording(
        **_only(Recording, summary)
        | {
            "fidelity": _load_fidelity(summary["fidelity"]),
            "flows": tuple(FlowRecord(**_only(FlowRecord, flow)) for flow in summary["flows"]),
            "jobs": tuple(JobRecord(**_only(JobRecord, job)) for job in summary.get("jobs", ())),
            "steps": tuple(
                StepRecord(**_only(StepRecord, step)) for step in summary.get("steps", ())
            ),
            "faults": tuple(
                FaultRecord(**_only(FaultRecord, fault)) for fault in summary.get("faults", ())
            ),
            "deadlocks": tuple(
                Deadlock(**found | {"ports": tuple(found["ports"])})
                for found in summary.get("deadlocks", ())
            ),
            "failed_queue_pairs": tuple(
                FailedQueuePair(**found) for found in summary.get("failed_queue_pairs", ())
            ),
            "sweeps": tuple(SweepRecord(**sweep) for sweep in summary.get("sweeps", ())),
            "captures": {port: path.with_name(file) for port, file in summary["captures"].items()},
            "notes": tuple(summary["notes"]),
            "not_known": tuple(summary.get("not_known", ())),
            "warnings": tuple(summary.get("warnings", ())),
            "series": series,
            "requests": requests,
        }
    )


def _load_fidelity(fidelity: Mapping[str, Any]) -> Fidelity:
    return Fidelity(**_only(Fidelity, fidelity) | {"reasons": tuple(fidelity["reasons"])})


def _only(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values whose names are fields of this dataclass."""
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}
