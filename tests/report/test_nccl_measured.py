"""`emu nccl --measured`: output of nccl-tests and CSV files are read, and stand beside ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emu.cli.nccl import command
from emu.errors import UsageError
from emu.measure.nccl_output import read_measured

EXAMPLE = Path(__file__).parents[2] / "examples/nccl/two-h100.csv"
PRINTED = """\
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   4711 on      node1 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4712 on      node2 device  0 [0x1b] NVIDIA H100 80GB HBM3
node1:4711:4711 [0] NCCL INFO Bootstrap : Using eth0
#       size         count      type   redop    root     time   algbw   busbw #wrong  time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)         (us)
     1048576        262144     float     sum      -1    61.84   16.96   29.67      0  60.9 1 2 0
     2097152        524288     float     sum      -1    99.00   21.18   37.07    N/A  98.1 1 2 0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 33.37
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "measured.txt"
    path.write_text(text)
    return path


def ran(*words: str) -> Result:
    return CliRunner().invoke(command, ["all_reduce", "--quiet", *words])


def test_the_output_of_nccl_tests_is_read_as_printed(tmp_path: Path) -> None:
    """Out of place, with NCCL's log between the lines."""
    run = read_measured(written(tmp_path, PRINTED))
    assert run.ranks == 2
    assert [(one.size_bytes, one.busbw_gb_per_s, one.time_us) for one in run.sizes] == [
        (1_048_576, 29.67, 61.84),
        (2_097_152, 37.07, 99.0),
    ]


def test_output_through_mpirun_and_without_roots_is_the_same(tmp_path: Path) -> None:
    """mpirun can put the rank in front of each line; older versions print no root."""
    plain = read_measured(written(tmp_path, PRINTED))
    tagged = "".join(f"[1,0]<stdout>: {line}\n" for line in PRINTED.splitlines())
    assert read_measured(written(tmp_path, tagged)) == plain
    assert read_measured(written(tmp_path, PRINTED.replace("sum      -1", "sum"))) == plain


def test_our_own_table_is_read_back_with_ratios_of_one(tmp_path: Path) -> None:
    """emu prints what nccl-tests prints."""
    ours = ran("-g", "4", "-b", "64K", "-e", "256K", "-f", "2")
    result = ran("-g", "4", "--measured", str(written(tmp_path, ours.stdout)), "--json")
    found = json.loads(result.stdout)["measured"]["results"]
    assert [one["size_bytes"] for one in found] == [65_536, 131_072, 262_144]
    assert [one["ratio"] for one in found] == pytest.approx([1] * 3, abs=0.002)


def test_the_example_is_slower_than_its_fabric() -> None:
    """Real ranks have software: each measured figure is below ours, and ours below the line,
    50 GB/s. The larger the size, the smaller the difference."""
    result = ran("-g", "2", "--measured", str(EXAMPLE), "--json")
    measured = json.loads(result.stdout)["measured"]
    ratios = [one["ratio"] for one in measured["results"]]
    assert all(ratio > 1 for ratio in ratios)
    assert ratios == sorted(ratios, reverse=True)
    assert all(one["busbw_gb_per_s"] < 50 * 0.98 for one in measured["results"])
    assert "issue 232" in " ".join(measured["notes"])


def test_terminal_page_and_json_have_the_comparison(tmp_path: Path) -> None:
    """Its lines are comments, so that scripts for nccl-tests skip them."""
    result = ran("-g", "2", "-e", "4M", "--measured", str(EXAMPLE), "--out", str(tmp_path / "out"))
    below = result.stdout.partition("# Measured: two-h100.csv")[2].splitlines()
    assert all(line.startswith("#") for line in below[1:])
    assert [line.split()[1:3] for line in below if " 18.53 " in line or " 27.16 " in line] == [
        ["2097152", "18.53"],
        ["4194304", "27.16"],
    ]
    assert not any("36.24" in line for line in below), "-e 4M leaves larger sizes out"
    page = (tmp_path / "out" / "nccl.html").read_text()
    assert "Bus bandwidth over size" in page
    assert "<td" in page
    assert "27.16" in page
    document = json.loads((tmp_path / "out" / "nccl.json").read_text())
    assert len(document["measured"]["results"]) == len(document["results"]) == 2


def test_another_number_of_ranks_is_noted(tmp_path: Path) -> None:
    result = ran("-g", "4", "--measured", str(written(tmp_path, PRINTED)))
    assert "measured with 2 ranks, emulated with 4" in result.stdout


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", ["has no measurement"]),
        ("size,busbw\n1,2\n", ["has no measurement"]),
        ("size_bytes,time_us\n8,2\n", ["has no column busbw_gb_per_s"]),
        (
            "# source\nsize_bytes,busbw_gb_per_s,time_us\n8,fast,1\n8.5,2,1\n8,2,never\n",
            ["line 3: busbw_gb_per_s", "line 4: size_bytes", "line 5: time_us"],
        ),
    ],
)
def test_all_mistakes_of_a_file_are_told_at_once(
    tmp_path: Path, text: str, errors: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        read_measured(written(tmp_path, text))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(errors)
    assert all(error in line for error, line in zip(errors, lines, strict=True))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--measured", str(EXAMPLE), "-f", "2"], "the sizes are those of the file"),
        (["--measured", str(EXAMPLE), "-e", "1M"], "has no size from 1 to 1048576 bytes"),
        (["--measured", "nowhere.txt"], "cannot be read"),
        (["--measured", "/dev/zero"], "is a character device"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], error: str) -> None:
    result = ran("-g", "2", *words)
    assert isinstance(result.exception, UsageError)
    assert error in str(result.exception)
