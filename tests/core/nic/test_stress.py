"""Every operation, both ways, over a wire that loses, repeats, reorders and damages packets.

`stress.c` checks that every byte is correct, every completion comes once and in order, and no other
memory changes. This file draws its arguments. A longer run by hand:

    pytest tests/core/nic/test_stress.py --examples 2000
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.core.self_tests import run
from tests.support.limits import examples

RECOVERY = ("go-back-n", "go-back-0", "selective-repeat")


@st.composite
def stress_arguments(draw: st.DrawFn) -> list[str]:
    """Arguments of `stress`: all three recovery schemes, both framings, losses of up to 5 %."""
    recovery = draw(st.sampled_from(RECOVERY))
    restarts = recovery == "go-back-0"  # a long message would never arrive
    mtu = draw(st.sampled_from([256, 1024, 4096]))
    packets = draw(st.integers(1, 4 if restarts else 16))
    return [
        draw(st.sampled_from(["0", "1"])),
        recovery,
        str(draw(st.integers(0, 2**32 - 1))),
        *(str(draw(st.integers(0, most))) for most in (50, 30, 30, 20)),
        str(draw(st.integers(1, 30))),
        str(min(packets * mtu, 20_000)),
        str(mtu),
        str(1 if restarts else draw(st.integers(1, 16))),
        str(draw(st.integers(1, 128))),
    ]


def test_all_operations_survive_a_lossy_wire(programs: Path) -> None:
    """Integrity under loss, duplication, reordering and corruption together."""

    @examples(60)
    @given(stress_arguments())
    def burn(arguments: list[str]) -> None:
        run(programs / "stress", *arguments)

    burn()
