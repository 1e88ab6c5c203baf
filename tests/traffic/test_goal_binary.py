"""GOAL's binary form: the same steps as the text, and errors for files that are broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.goal_writer import write_goal_binary
from tests.traffic.test_goal import RELAY
from traffic.traces.goal import read_goal
from traffic.traces.goal_binary import is_goal_binary, read_goal_binary
from traffic.traces.play import graph_of
from traffic.traces.trace import Trace, TraceError

PAIR = bytes.fromhex(
    "7f10000000000000"  # 4223
    "02000000" "00" "00"  # 2 ranks
    "2600000000000000" "8400000000000000"  # rank 0: 38 to 132
    "8400000000000000" "b700000000000000"  # rank 1: 132 to 183
    "02000000" "01000000" "00000000"  # 2 operations, one of them waits for nothing: number 0
    "00000000" "03" "00000000" "6400000000000000" "00000000" "00" "00"  # calc 100
    "01000000" "00000000" "00000000" "01000000"  # one waits for its end
    "01000000" "01" "01000000" "0a00000000000000" "05000000" "00" "00"  # send 10 to 1, tag 5
    "00000000" "01000000" "00000000" "01000000"
    "01000000"  # number 1
    "01000000" "01000000" "00000000"
    "00000000" "02" "00000000" "0a00000000000000" "05000000" "00" "00"  # receive 10 from 0
    "00000000" "00000000" "00000000" "00000000"
)  # fmt: skip
"""Written by hand from the layout, field by field."""
SAME = """
num_ranks 2
rank 0 {
l1: calc 100
l2: send 10b to 1 tag 5
l2 requires l1
}
rank 1 {
l1: recv 10b from 0 tag 5
}
"""


def without_places(trace: Trace) -> Trace:
    """Text and binary form name their steps differently."""
    return Trace(trace.ranks, tuple(replace(step, where="") for step in trace.steps))


def same(text: str) -> bool:
    by_text = read_goal(text, "t.goal")
    data = write_goal_binary(by_text)
    return without_places(read_goal_binary(data, "t.bin")) == without_places(by_text)


def test_bytes_written_by_hand_are_the_schedule_in_text() -> None:
    binary, text = read_goal_binary(PAIR, "pair.bin"), read_goal(SAME, "pair.goal")
    assert without_places(binary) == without_places(text)
    assert is_goal_binary(PAIR)
    assert not is_goal_binary(SAME.encode())


def test_text_and_binary_form_are_the_same_graph() -> None:
    assert same(RELAY)
    by_text, hosts = read_goal(RELAY, "t.goal"), ["h1", "h2", "h3"]
    binary = read_goal_binary(write_goal_binary(by_text), "t.bin")
    assert graph_of("t", binary, hosts) == graph_of("t", by_text, hosts)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**31)), min_size=1, max_size=12))
def test_any_chain_is_the_same_in_both_forms(steps: list[tuple[bool, int]]) -> None:
    """Calcs and sends one after another, and the receives of the other rank."""
    first, second = ["rank 0 {"], ["rank 1 {"]
    for number, (sends, size) in enumerate(steps):
        what = f"send {size}b to 1 tag {number}" if sends else f"calc {size}"
        first.append(f"l{number}: {what}")
        if number:
            first.append(f"l{number} {'requires' if size % 2 else 'irequires'} l{number - 1}")
        if sends:
            second.append(f"r{number}: recv {size}b from 0 tag {number}")
    assert same("\n".join(["num_ranks 2", *first, "}", *second, "}"]))


@pytest.mark.parametrize("length", range(9, len(PAIR)))
def test_a_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(TraceError, match=r"write it again|write the file again"):
        read_goal_binary(PAIR[:length], "pair.bin")


@pytest.mark.parametrize(
    ("at", "byte", "error"),
    [
        (0, 0x26, r"pair.bin: was used up by LogGOPSim's --save-mem"),
        (58 + 4, 9, r"rank 0, operation 0: has type 9; known are 1 send, 2 receive, 3 calc"),
        (97, 2, r"rank 0: operation 1 waits for 1 others, and 0 name it|waits for 2 others"),
        (97 + 5, 0, r"rank 0, operation 1: is a message of rank 0 to itself"),
        (97 + 5, 7, r"rank 0, operation 1: there is no rank 7 among 2"),
        (136, 5, r"rank 0: names an operation that is not there"),
    ],
)
def test_broken_files_are_explained(at: int, byte: int, error: str) -> None:
    data = bytearray(PAIR)
    data[at] = byte
    if not at:
        data[:2] = (2342).to_bytes(2, "little")
    with pytest.raises(TraceError, match=error):
        read_goal_binary(bytes(data), "pair.bin")
