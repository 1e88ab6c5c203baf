"""Input files: devices, pipes and endless files are refused at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.results import command as results
from emu.cli.topology import command as topology
from emu.errors import SpecError, UsageError
from emu.spec.load import load_spec, spec_from_text
from emu.wire.reader import CaptureError, open_capture

TRACE = """
topology: {{kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}}
traffic: [{{name: t, pattern: trace, among: all, format: {format}, file: {file}{more}}}]
"""


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "job.0.et")
    return folder / "job.0.et"


def named_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "job.0.et"))
    return folder / "job.0.et"


def device(folder: Path) -> Path:
    (folder / "job.0.et").symlink_to("/dev/zero")
    return folder / "job.0.et"


def endless(folder: Path) -> Path:
    """A sparse file that is longer than any limit."""
    with (folder / "job.0.et").open("wb") as file:
        file.truncate(1 << 40)
    return folder / "job.0.et"


def load_goal(path: Path) -> None:
    spec_from_text(TRACE.format(format="goal", file=path, more="").encode(), source="x.emu.yml")


def load_chakra(path: Path) -> None:
    prefix = str(path).removesuffix(".0.et")
    spec_from_text(TRACE.format(format="chakra", file=prefix, more="").encode(), source="x.emu.yml")


def load_groups(path: Path) -> None:
    text = TRACE.format(format="chakra", file=path, more=f", groups: {path}")
    spec_from_text(text.encode(), source="x.emu.yml")


def import_topology(path: Path) -> None:
    result = CliRunner().invoke(topology, ["import", str(path)])
    assert result.exception is not None
    raise result.exception


def read_capture(path: Path) -> None:
    with open_capture(path) as capture:
        list(capture)


READERS = [load_spec, load_goal, load_chakra, load_groups, import_topology, read_capture]


@pytest.mark.parametrize("make", [fifo, named_socket, device])
@pytest.mark.parametrize("read", READERS)
def test_special_files_are_refused_at_once(
    read: Callable[[Path], object], make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """No reader waits for a writer or reads a device until memory runs out."""
    with pytest.raises((SpecError, UsageError, CaptureError)) as refused:
        read(make(tmp_path))
    assert any(
        word in str(refused.value) for word in ("FIFO", "device", "socket", "No such device")
    )


@pytest.mark.parametrize("read", READERS[:-1])
def test_a_file_over_the_limit_is_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    """The error gives the limit. Captures have none, because they are read frame by frame."""
    with pytest.raises((SpecError, UsageError), match=r"is longer than \d+ bytes") as refused:
        read(endless(tmp_path))
    assert "name it as seen" not in str(refused.value)  # it was found


def test_results_needs_a_folder(tmp_path: Path) -> None:
    """The error says that the path is no folder."""
    result = CliRunner().invoke(results, [str(fifo(tmp_path))])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).endswith("job.0.et: is not a folder; name a folder with specs")


def test_a_finding_does_not_quote_the_file(tmp_path: Path) -> None:
    """A spec from another author may name a file that the author must not read."""
    secret = tmp_path / "shadow"
    for text in ("root:$6$secret:19000:0:99999:7:::\n", "num_ranks 1\nrank 0 {\n$6$secret\n}\n"):
        secret.write_text(text)
        for load in (load_goal, load_groups):
            with pytest.raises(SpecError) as refused:
                load(secret)
            assert "$6$" not in str(refused.value)
