"""`emu nccl` against a reader of nccl-tests' output, written from the format's description.

nccl-tests prints comments with # in front, and for each size a line of

    size count type redop root  time algbw busbw #wrong  time algbw busbw #wrong

out of place, then in place: bytes, elements, microseconds, GB/s (doc/PERFORMANCE.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from emu.cli.nccl import command
from emu.errors import ExitCode, SpecError, UsageError
from emu.measure.recording import Recording
from emu.measure.records import JobRecord
from emu.report.nccl import closing, row
from emu.runtime import Runner
from emu.runtime.record import record
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec
from emu.subnet.sm_sweeps import manage, pairs_of
from emu.subnet.subnet import Subnet
from topologies.graph import Topology

Recorded = tuple[Recording, Spec, Topology]

BUS_FACTOR: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
}


@dataclass(frozen=True)
class Measured:
    time_us: float
    algbw: float
    busbw: float
    wrong: str


@dataclass(frozen=True)
class Line:
    size: int
    count: int
    type: str
    redop: str
    root: int
    out_of_place: Measured
    in_place: Measured


def lines_of(output: str) -> list[Line]:
    """The rows of the table, parsed by columns as scripts for nccl-tests do."""
    lines = []
    for text in output.splitlines():
        if text.startswith("#") or not text.strip():
            continue
        size, count, kind, redop, root, *halves = text.split()
        assert len(halves) == 8, text
        one, two = (
            Measured(float(half[0]), float(half[1]), float(half[2]), half[3])
            for half in (halves[:4], halves[4:])
        )
        lines.append(Line(int(size), int(count), kind, redop, int(root), one, two))
    return lines


def average_busbw(output: str) -> float:
    found = re.search(r"^# Avg bus bandwidth\s*:\s*([\d.]+)", output, re.MULTILINE)
    assert found
    return float(found[1])


def swept(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments])


@pytest.mark.parametrize("collective", BUS_FACTOR)
def test_the_output_parses_as_that_of_nccl_tests(collective: str) -> None:
    """Every size has a row, bandwidths follow from size and time, and no value is wrong."""
    result = swept(collective, "-b", "1K", "-e", "256K", "-f", "4", "-g", "4")
    assert result.exit_code == 0, result.output
    lines = lines_of(result.stdout)
    assert [line.size for line in lines] == [1024 * 4**n for n in range(5)]
    pieces = 1 if collective in ("all_reduce", "broadcast") else 4
    for line in lines:
        measured = line.out_of_place
        assert measured == line.in_place
        assert measured.wrong == "0"
        assert line.count * 4 * pieces == line.size
        assert line.type == "float"
        assert line.redop == ("sum" if "reduce" in collective else "none")
        assert line.root == (0 if collective == "broadcast" else -1)
        assert measured.algbw == pytest.approx(line.size / measured.time_us / 1000, abs=0.15)
        assert measured.busbw == pytest.approx(measured.algbw * BUS_FACTOR[collective](4), abs=0.02)
    rates = [line.out_of_place.busbw for line in lines]
    assert rates == sorted(rates)
    assert average_busbw(result.stdout) == pytest.approx(sum(rates) / len(rates), abs=0.02)
    assert "# Out of bounds values : 0 OK\n" in result.stdout


def devices_in(output: str) -> list[tuple[str, str, str]]:
    """Rank, host and device number of each rank line."""
    line = r"^#\s+Rank\s+(\d+) Group\s+0 Pid\s+\d+ on\s+(\S+) device\s+(\d+) "
    return re.findall(line, output, re.M)


def test_every_rank_is_named_above_the_table() -> None:
    """The lines are those in which nccl-tests names its devices."""
    output = swept("all_reduce", "-b", "8", "-e", "8", "-g", "3").stdout
    assert output.startswith("# nThread 1 nGpus 3 minBytes 8 maxBytes 8 step: 1048576(bytes)")
    assert devices_in(output) == [("0", "h1", "0"), ("1", "h2", "0"), ("2", "h3", "0")]
    (line,) = lines_of(output)
    assert (line.size, line.count) == (8, 2), "of less than an element a rank"


def test_opensm_routes_the_fabric_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes use exchanges and large ones a ring, with other neighbours.

    Each size takes as long as it does alone.
    """
    asked: list[set[tuple[str, str]]] = []

    def counted(
        spec: Spec, topology: Topology, workdir: Path, *others: Spec, all_pairs: bool
    ) -> Subnet:
        asked.append(pairs_of(spec).union(*map(pairs_of, others)))
        return manage(spec, topology, workdir, *others, all_pairs=all_pairs)

    monkeypatch.setattr("emu.subnet.sm_sweeps.manage", counted)
    options = ("-f", "1024", "-g", "4", "--fabric", "ib")
    result = swept("all_reduce", "-b", "4K", "-e", "4M", *options)
    assert result.exit_code == 0, result.output
    (pairs,) = asked
    assert {("h1", "h2"), ("h4", "h1"), ("h4", "h2")} <= pairs
    alone = [swept("all_reduce", "-b", size, "-e", size, *options) for size in ("4K", "4M")]
    assert lines_of(result.stdout) == [line for one in alone for line in lines_of(one.stdout)]
    assert len(asked) == 3


def test_unchecked_sizes_have_no_wrong_count() -> None:
    """With -c 0 and with elided payload, #wrong is N/A."""
    result = swept("all_gather", "-b", "64K", "-e", "64K", "-g", "2", "-c", "0")
    assert [line.out_of_place.wrong for line in lines_of(result.stdout)] == ["N/A"]
    assert "validation: 0" in result.stdout


@pytest.mark.parametrize(("checks", "told", "code"), [("0", "N/A", 0), ("1", "3", 1)])
def test_wrong_values_are_shown_if_checks_are_enabled(
    checks: str, told: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real clock has all bytes and always compares them."""

    def damaged(name: str, spec: Spec, _runner: Runner, out: Path, **_: object) -> Recorded:
        recording, spec, topology = record(name, spec, VirtualRunner(), out, quiet=True)
        return replace(recording, jobs=(job(1000, 3),)), spec, topology

    monkeypatch.setattr("emu.cli.nccl.record", damaged)
    result = swept("all_reduce", *ONE, "-c", checks, "--clock", "real")
    assert [line.out_of_place.wrong for line in lines_of(result.stdout)] == [told]
    assert result.exit_code == code


def test_the_fabric_may_come_from_a_spec() -> None:
    """The spec's traffic and checks are ignored. Its hosts are the ranks."""
    spec = Path(__file__).parents[2] / "topologies" / "incast.emu.yml"
    result = swept("broadcast", "-b", "4K", "-e", "4K", "-r", "2", "--spec", str(spec))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("emulated RoCEv2 100Gbit") == 8
    assert [line.root for line in lines_of(result.stdout)] == [2]


def test_the_heading_has_the_given_sizes() -> None:
    """nccl-tests also prints the limits as given and not as rounded."""
    output = swept("all_reduce", "-b", "9", "-e", "1K", "-f", "8", "-g", "2").stdout
    assert output.startswith("# nThread 1 nGpus 2 minBytes 9 maxBytes 1024 step: 8(factor)")
    assert [line.size for line in lines_of(output)] == [8, 72, 576]


@pytest.mark.parametrize("algorithm", ["ring", "double-tree", "halving-doubling"])
def test_sizes_begin_with_an_element_for_every_rank(algorithm: str) -> None:
    """This holds if each rank has a piece of the buffer. A tree can reduce a single element."""
    small = ["all_reduce", "-b", "8", "-e", "64", "-f", "2", "-g", "4"]
    lines = lines_of(swept(*small, "-a", algorithm).stdout)
    assert [line.size for line in lines] == [16, 32, 64]
    assert [line.size for line in lines_of(swept(*small, "-a", "tree").stdout)] == [8, 16, 32, 64]


def test_the_buffer_of_one_switch_grows_with_its_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest switch gives a valid spec."""
    made = []

    def told(name: str, spec: Spec, *_: object, **_options: object) -> NoReturn:
        made.append(len(spec.topology.build().hosts))
        raise KeyboardInterrupt

    monkeypatch.setattr("emu.cli.nccl.record", told)
    swept("broadcast", "-b", "4", "-e", "4", "-g", "511")
    assert made == [511]


TWO_SERVERS = ["--set", "hosts.gpus=4", "-g", "8", "-c", "0"]


@pytest.mark.parametrize("servers", [[], TWO_SERVERS], ids=["hosts alone", "two servers"])
@pytest.mark.parametrize("size", ["256", "64K", "16M"])
def test_auto_takes_the_fastest_algorithm(size: str, servers: list[str]) -> None:
    """The time is within 5 % of the best algorithm's."""
    sweep = ["all_reduce", "-b", size, "-e", size, *servers]
    took = {}
    for algorithm in ("ring", "tree", "double-tree", "halving-doubling", "hierarchical", "auto"):
        if servers or algorithm != "hierarchical":
            (line,) = lines_of(swept(*sweep, "-a", algorithm).stdout)
            took[algorithm] = line.out_of_place.time_us
    assert took["auto"] <= 1.05 * min(took.values()), took


def test_auto_prints_the_algorithm_of_each_size() -> None:
    output = swept(
        "all_reduce", "-b", "1K", "-e", "16M", "-f", "16384", "-g", "8", "-c", "0"
    ).stdout
    chosen = re.findall(r"^# auto: (\S+) for (\d+) bytes$", output, re.MULTILINE)
    assert chosen == [("halving-doubling", "1024"), ("ring", "16777216")]


def test_channels_are_printed_as_in_nccls_log() -> None:
    """The lines give their number, the ranks of each ring, and the NICs of the first server."""
    output = swept("all_reduce", *ONE, "-a", "ring", *TWO_SERVERS).stdout
    info = [line.partition("NCCL INFO ")[2] for line in output.splitlines() if "NCCL INFO" in line]
    assert info[:3] == [
        "4 coll channels",
        "Channel 00/04 :   1   2   3   0   4   6   7   5",
        "Channel 01/04 :   2   3   0   1   5   7   4   6",
    ]
    assert "Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0" in info
    assert "Channel 00/0 : 5[1] -> 1[1] [receive] via NET/IB/1" in info
    sends = [line[-1] for line in info if "[send]" in line]
    assert sorted(sends) == ["0", "1", "2", "3"], "each NIC on one channel"


def test_device_numbers_match_the_nics_of_channels() -> None:
    """A server has four NICs: `NET/IB/3` of a channel is device 3 of the rank lines."""
    output = swept("all_reduce", *ONE, "-a", "ring", *TWO_SERVERS).stdout
    number = {f"{rank}[{device}]" for rank, _, device in devices_in(output)}
    assert [device for *_, device in devices_in(output)] == [*"01230123"]
    assert {*re.findall(r"(\S+) -> \S+ \[send\]", output)} <= number


def test_quiet_prints_no_progress() -> None:
    sweep = ["all_reduce", *ONE, "-g", "2"]
    assert "emulated" in swept(*sweep).stderr
    quiet = swept(*sweep, "--quiet")
    assert (quiet.stderr, len(lines_of(quiet.stdout))) == ("", 1)


def test_trees_are_printed_as_in_nccls_log() -> None:
    """Each channel has children, rank and parent."""
    output = swept("all_reduce", *ONE, "-a", "tree", "--channels", "2", *TWO_SERVERS).stdout
    assert "# h1:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->4 [1] -1/-1/-1->0->3\n" in output
    assert "# h1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0\n" in output


def test_nccl_debug_prints_channels_for_single_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL_DEBUG is NCCL's own variable."""
    sweep = ["all_reduce", *ONE, "-g", "3", "-a", "ring"]
    assert "NCCL INFO" not in swept(*sweep).stdout
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    assert "NCCL INFO Channel 00/01 :   0   1   2\n" in swept(*sweep).stdout


def test_json_is_one_document(tmp_path: Path) -> None:
    """`--out` writes the document and the table."""
    sweep = ["all_reduce", "-b", "1K", "-e", "4K", "-f", "4", "-a", "ring", *TWO_SERVERS[:-2]]
    asked = swept(*sweep, "--json", "--out", str(tmp_path / "out"))
    told = json.loads(asked.stdout)
    assert [one["size_bytes"] for one in told["results"]] == [1024, 4096]
    assert told["ranks"] == [f"h{number}" for number in range(1, 9)]
    assert told["channels"]["ring"]["count"] == len(told["channels"]["ring"]["rings"]) == 4
    assert len(told["channels"]["ring"]["connections"]) == 8
    assert json.loads((tmp_path / "out" / "nccl.json").read_text()) == told
    table = (tmp_path / "out" / "nccl.txt").read_text()
    for line, one in zip(lines_of(table), told["results"], strict=True):
        assert line.out_of_place.time_us == pytest.approx(one["time_us"], abs=0.01)
        assert line.out_of_place.busbw == pytest.approx(one["busbw_gb_per_s"], abs=0.01)
    assert swept(*sweep).stdout == table


def test_diagnoses_stand_below_their_size(tmp_path: Path) -> None:
    """Without a diagnosis, a slow size would look like the fabric's best."""
    servers = ("hosts.gpus=4", "topology.hosts_per_leaf=8")
    settings = (*servers, "switches.pfc=off", "switches.buffer=1MB", "hosts.nic.timeout=8")
    lossy = [word for setting in settings for word in ("--set", setting)]
    sweep = ["all_reduce", "-b", "1K", "-e", "4M", "-f", "4096", "-a", "ring", "-g", "6", *lossy]
    asked = swept(*sweep, "--json", "--out", str(tmp_path))
    small, large = json.loads(asked.stdout)["results"]
    assert small["diagnoses"] == []
    assert large["diagnoses"][0].startswith("Loss: leaf1:h")
    table = (tmp_path / "nccl.txt").read_text().splitlines()
    place = next(n for n, line in enumerate(table) if line.split()[:1] == ["4194304"])
    assert table[place + 1] == f"# {large['diagnoses'][0]}"


ONE = ["-b", "1K", "-e", "1K"]
SERVERS = ["--set", "hosts.gpus=2", "--set", "topology.hosts_per_leaf=4"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["broadcast", "-b", "2M", "-e", "1M"],
            "-e 1048576 is less than -b 2097152; give the smaller size to -b",
        ),
        (["broadcast", *ONE, "-r", "8"], "-r 8: ranks are 0 to 7"),
        (["all_reduce", *ONE, "-r", "0"], "-r 0: all_reduce has no root; leave it out"),
        (["all_gather", *ONE, "-a", "tree"], "-a tree: all_gather has ring alone; leave -a out"),
        (
            ["all_reduce", *ONE, "-a", "chain"],
            "-a chain: all_reduce has ring, tree, double-tree, halving-doubling, hierarchical "
            "alone; leave -a out",
        ),
        (
            ["all_reduce", *ONE, "-a", "hierarchical"],
            "-a hierarchical: every host stands alone; say how many are a server, e.g. --set "
            "hosts.gpus=4",
        ),
        (
            ["all_reduce", *ONE, "-g", "3", "-a", "hierarchical", *SERVERS],
            "-g 3: with -a hierarchical ranks must be whole servers of 2 (hosts.gpus); take 2",
        ),
        (
            ["all_reduce", *ONE, "-f", "2", "-i", "1K"],
            "-f 2 and -i 1024: multiply or add? Leave one of them out",
        ),
        (
            ["all_reduce", *ONE, "--fabric", "ib", "--set", "fabric=roce"],
            "--fabric ib and --set fabric: leave one of them out",
        ),
        (
            ["all_reduce", *ONE, "--set", "capture=all"],
            "--set capture: emu nccl has its own capture; leave it out",
        ),
        (
            ["all_reduce", *ONE, "--set", "hosts.stack=tcp"],
            "hosts.stack: tcp, but emu nccl measures RDMA; add --set hosts.stack=rdma",
        ),
        (
            ["all_reduce", *ONE, "--set", "topology.hosts_per_leaf=1"],
            "a collective needs two hosts; nccl has one",
        ),
        (
            ["all_reduce", *ONE, "-g", "512"],
            "-g 512: one switch has 511 hosts at most; give a larger fabric by --spec",
        ),
    ],
)
def test_usage_errors_come_before_any_run(arguments: list[str], told: str) -> None:
    """The error names the mistake and the remedy."""
    result = swept(*arguments)
    assert isinstance(result.exception, UsageError)
    assert (str(result.exception), result.stdout) == (told, "")


@pytest.mark.parametrize(
    "words", ["-b 0", "-e 2049M", "-i 0", "-f 0", "-f 1", "-g 1", "--chunk 0", "--channels 0"]
)
def test_numbers_out_of_range_are_refused(words: str) -> None:
    """The error names the option."""
    result = swept("all_reduce", *words.split())
    assert result.exit_code == ExitCode.USAGE
    assert f"Invalid value for '{words.split()[0]}'" in result.output


def test_too_many_messages_are_refused_before_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names options, because the user wrote no spec.

    The largest size is checked first.
    """
    monkeypatch.setattr("emu.resources.machine_memory_bytes", lambda: 4_000_000_000)
    result = swept("all_reduce", "-b", "8", "-e", "8M", "-f", "1048576", "--chunk", "4")
    assert result.stdout == ""
    assert str(result.exception) == (
        "all_reduce of 8388608 bytes, -g 8 --chunk 4 --channels 1: makes 29,360,128 messages, for "
        "which 8.808 GB of memory are needed at least, and this machine has 4 GB; send fewer, "
        "larger messages"
    )


def test_more_ranks_than_hosts_are_refused() -> None:
    """The number of hosts is that of the spec's fabric."""
    spec = str(Path(__file__).parents[2] / "topologies" / "incast.emu.yml")
    result = swept("all_reduce", "-g", "9", "--spec", spec)
    assert str(result.exception) == "-g 9: the fabric has 8 hosts; ask for no more ranks"


def test_ranks_must_suit_the_algorithm() -> None:
    """Nine hosts are not a whole number of servers of two."""
    result = swept("all_reduce", "-g", "9", "-a", "hierarchical", "--set", "hosts.gpus=2")
    assert isinstance(result.exception, SpecError)
    assert "9 hosts are not a whole number of servers of 2 GPUs" in str(result.exception)


def job(took_ns: int | None, wrong: int | None) -> JobRecord:
    return JobRecord("j", "all-reduce", "ring", 8, 1 << 30, 1.75, 0, took_ns, wrong)


def test_columns_stay_apart_for_any_time() -> None:
    """A time fits seven characters; long times have fewer decimals."""
    for took_ns in (1, 12_345_678, 123_456_789, 12_345_678_901):
        fields = row(job(took_ns, 3), 0).split()
        assert len(fields) == 13
        assert float(fields[5]) == pytest.approx(took_ns / 1000, rel=0.001, abs=0.01)
        assert fields[8] == "3"
    assert row(job(None, None), 0).split()[5:] == ["N/A"] * 8
    assert next(closing([job(1, 3), job(1, 0)])) == "# Out of bounds values : 3 FAILED"
    assert "# Avg bus bandwidth    : N/A" in list(closing([]))
