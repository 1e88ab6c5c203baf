"""Messages to the user while a verb works. They go to stderr; stdout is for results."""

from __future__ import annotations

from emu.streams import print_note

__all__ = ["TIME_OF_PROGRAMS_IN_EXACT_LABS", "print_note", "time_of_programs"]

TIME_OF_PROGRAMS_IN_EXACT_LABS = (
    "programs that use RDMA verbs (ib_write_bw, ...) measure the fabric's time; others measure "
    "this machine's, which says nothing of the fabric here: for them, bring the lab up with "
    "--clock real"
)


def time_of_programs(slowdown: float) -> str:
    """How to convert the measurements of programs on a lab's hosts to emulated time."""
    return (
        f"programs on hosts measure real time: multiply their rates by {slowdown:g}, "
        f"divide their times by it"
    )
