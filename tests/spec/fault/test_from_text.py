"""The text after `emu fault set` follows the rules of a spec; errors name the keys of the text."""

from __future__ import annotations

import pytest

from emu.errors import SpecError, UsageError
from emu.spec.fault.from_text import fault_from_text
from emu.spec.load import spec_from_text

LAB = spec_from_text(
    b"""
topology: {kind: dumbbell, hosts_per_side: 1}
switches: {pfc: {}}
faults: [{at: 1us, loss: {cable: "left:right", every: 2}}]
""",
    source="lab",
)


def test_a_fault_is_read_as_in_a_spec() -> None:
    fault = fault_from_text("{name: cut, for: 1ms, link-down: {cable: left:right}}", LAB)
    assert (fault.name, fault.kind, fault.for_ps) == ("cut", "link-down", 10**9)
    assert fault.what.place == "left:right"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "loss: {cable: left:rihgt, every: 2}",
            ["loss.cable: there is no cable 'left:rihgt' (did you mean 'left:right'?)"],
        ),
        (
            "{at: 3us, delay: {cable: left:right, by: 3}}",
            [
                "at: has no effect in a running lab, where a fault begins when it is set; leave it "
                "out",
                "delay.by: 3 has no unit; write it like 600ns or 55us",
            ],
        ),
        ("loss", ["must be a mapping of keys to values, not 'loss'"]),
        (
            "{for: 1us, for: 2us, link-down: {cable: left:right}}",
            ["for: is given twice, first in line 1; keep one of them"],
        ),
        (
            "pause-storm: {host: h1, priority: 5}",
            [
                "pause-storm.priority: left:h1 does not obey pause frames of priority 5; name it "
                "in switches.pfc.priorities"
            ],
        ),
    ],
)
def test_an_error_names_keys_of_the_text(text: str, says: list[str]) -> None:
    """The message begins with the text, and has no line and column."""
    with pytest.raises(SpecError) as error:
        fault_from_text(text, LAB)
    assert error.value.findings == [f"{text!r}: {line}" for line in says]


@pytest.mark.parametrize("text", ["{", "", "a: \udcff"])
def test_an_error_shows_how_to_write_a_fault(text: str) -> None:
    with pytest.raises(UsageError, match="is not a fault; write it like: loss: "):
        fault_from_text(text, LAB)
