"""The notebook runs from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient ipykernel")
ROOT = Path(__file__).parents[2]
SECONDS = 900


def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples/notebook.ipynb", as_version=4)
    for name in ("topologies", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    printed = {
        cell["id"]: "".join(
            output.get("text", "") + output.get("data", {}).get("text/plain", "")
            for output in cell["outputs"]
        )
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    }
    everything = "\n".join(printed.values())
    assert "75" in printed["cell-6"]
    assert "Recommended: " in everything
    assert "Winner: " in everything


def test_it_is_stored_without_outputs() -> None:
    stored = nbformat.read(ROOT / "examples/notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in stored.cells)
