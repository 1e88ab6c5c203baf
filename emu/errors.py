"""What can go wrong, by whose fault it is.

    EmuError
     ├─ SpecError          your file: every finding at once, each with line and column    exit 2
     ├─ UsageError         your command line                                              exit 2
     ├─ HostError          this machine lacks something; names it and the remedy          exit 3
     ├─ FabricError        we failed to build or to run the lab                           exit 4
     ├─ ProtocolError      bytes or calls that break a protocol's rule
     │   ├─ LocalProtocolError     this end did
     │   └─ RemoteProtocolError    the other end did
     └─ CheckFailed        a check in the spec's `verify:` failed                         exit 1

An inconclusive run is no error: its recording says so, and the exit code is 5.
"""

from __future__ import annotations

from enum import IntEnum

from emu.privilege import remedy_for_me


class ExitCode(IntEnum):
    """Exit codes of the `emu` command. Scripts rely on them."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    HOST = 3
    FAILED = 4
    INCONCLUSIVE = 5
    INTERRUPTED = 130


class EmuError(Exception):
    """Base of all errors that a user may meet. Its text is written for the user."""

    exit_code = ExitCode.FAILED


class SpecError(EmuError):
    """One or more findings in a spec file.

    `findings` holds one line each: `file:line:col: path: what is wrong (remedy)`.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, findings: list[str]) -> None:
        super().__init__("\n".join(findings))
        self.findings = findings


class UsageError(EmuError):
    """A command line, or a call, that cannot be carried out."""

    exit_code = ExitCode.USAGE


class HostError(EmuError):
    """This machine lacks something. `remedy` is a command, for an ordinary user, or a sentence."""

    exit_code = ExitCode.HOST

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        """For who reads it: an error may come from a lab, in which every user is root."""
        return f"{self.what}; {remedy_for_me(self.remedy)}"


class FabricError(EmuError):
    """The lab could not be built, or died while it ran."""


class ProtocolError(EmuError):
    """A rule of a protocol was broken."""


class LocalProtocolError(ProtocolError):
    """This end broke it."""


class RemoteProtocolError(ProtocolError):
    """The other end broke it."""


class CheckFailed(EmuError):
    """A check in the spec's `verify:` section failed."""

    exit_code = ExitCode.CHECK_FAILED
