"""Mininet's prompt in a running lab: `h1 ping h5`, `net`, `leaf1 ovs-ofctl dump-flows leaf1`."""

from __future__ import annotations

from mininet.cli import CLI

from emu.lab.messages import Request
from emu.lab.session import JobResult, open_session, start
from emu.lab.supervisor import Supervisor


class FabricPrompt(CLI):
    """Mininet's prompt under our name; leaves no history file behind."""

    prompt = "emu> "

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802, Mininet's name
        """Line editing, without Mininet's history file in the user's home."""
        import readline  # noqa: F401, importing it gives input() line editing


def run_shell(request: Request, supervisor: Supervisor) -> JobResult:
    """The job `shell`: a lab without traffic of its own, until the user leaves it."""
    session = open_session(request, supervisor, with_rnic=False)
    start(session)
    FabricPrompt(session.lab.net)
    return {}, []
