"""Gives a program on a lab's host the fabric's own clock, so that it shows the fabric's rates.

    LD_PRELOAD=libfaketimeMT.so.1  FAKETIME="+0 x0.001"      at slowdown 1000

libfaketime stands between a program and the C library's clocks and waits: `clock_gettime`,
`gettimeofday`, `nanosleep`, `select`, `poll`. So durations that the program measures, and
waits that it asks for, are the fabric's. What it cannot change:

- times that the kernel takes: of packets (SO_TIMESTAMP, as ping and tcpdump have them), TCP's
  round trips and retransmission timeouts, the kernel's pacing (SO_MAX_PACING_RATE);
- programs that do not call the C library for the time: static ones, and those in Go;
- programs with more rights than their user, for which the loader ignores LD_PRELOAD;
- the time of day: each program's begins when it is started, so that only durations compare.

Where we know that a program would show such a time as the fabric's, it is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from emu.errors import HostError, UsageError
from emu.lab.command import environment

_LIBRARY = "*/faketime/libfaketimeMT.so.1"
_REMEDY = "sudo apt-get install libfaketime"
_64_BIT = b"\x02"  # EI_CLASS of elf(5)
_INTERPRETER = 3  # PT_INTERP of elf(5)
_GLIBC = re.compile(rb"/ld-linux[^/]*\.so\.\d+$|/ld64\.so\.\d+$")
_GO = b"Go buildinf:"
_BY_THE_KERNEL = {
    **dict.fromkeys(("ping", "ping4", "ping6", "fping", "arping"), "the times of replies"),
    **dict.fromkeys(("traceroute", "tracepath", "mtr", "hping3"), "the times of replies"),
    **dict.fromkeys(("tcpdump", "tshark", "dumpcap", "wireshark"), "the times of packets"),
    **dict.fromkeys(("ss", "nstat", "sar"), "TCP's round trips and rates"),
    **dict.fromkeys(("owping", "ptp4l", "chronyd", "ntpd"), "times of day"),
}
"""Programs, and what they show that the kernel's clock has measured."""
_IPERF3 = (
    (re.compile(r"-[^-]*J.*|--json.*"), "its JSON has TCP's round trips by the kernel's clock"),
    (re.compile(r"--fq-rate.*"), "the kernel would pace by its own clock"),
)


def emulated_time(command: Sequence[str], slowdown: float) -> Mapping[str, str]:
    """What to add to the program's environment.

    Raises UsageError where its times would not all be the fabric's, HostError without libfaketime.
    """
    _refuse(command)
    factor = f"{1 / slowdown:.12g}"
    return {"LD_PRELOAD": str(library()), "FAKETIME": f"+0 x{factor}"}


def library() -> Path:
    """libfaketime, of this machine. Raises HostError."""
    for path in Path("/usr/lib").glob(_LIBRARY):
        return path
    raise HostError("libfaketime is not installed", remedy=_REMEDY)


def why_missing() -> str:
    """For `emu check`; empty when it is there."""
    try:
        library()
    except HostError as error:
        return error.what
    return ""


def _refuse(command: Sequence[str]) -> None:
    name = Path(command[0]).name
    if name in _BY_THE_KERNEL:
        raise _not_honest(name, f"{_BY_THE_KERNEL[name]} are measured by the kernel's clock")
    if name == "iperf3":
        for option, why in _IPERF3:
            wrong = [word for word in command[1:] if option.fullmatch(word)]
            if wrong:
                raise _not_honest(f"{name} {wrong[0]}", why)
    program = shutil.which(command[0], path=environment()["PATH"])
    if program is None:
        return
    try:
        reason = _why_not(Path(program))
    except OSError as error:
        reason = f"emu cannot look at it ({error.strerror}); it may keep the machine's clock"
    if reason:
        raise _not_honest(command[0], reason)


def _not_honest(what: str, why: str) -> UsageError:
    return UsageError(
        f"--emulated {what}: {why}, which stays real; leave --emulated out, and divide times by "
        "the slowdown (`emu status` has it)"
    )


def _why_not(program: Path, depth: int = 0) -> str:
    """Why libfaketime would not reach a program; empty: it does."""
    if program.stat().st_mode & 0o6000 or "security.capability" in os.listxattr(program):
        return (
            "it has more rights than you, libfaketime is left out, and it keeps the machine's clock"
        )
    with program.open("rb") as stream:
        start = stream.readline(256)
    if start.startswith(b"#!") and depth < 4:
        words = start[2:].decode(errors="replace").split()
        named = words[1:2] if words and Path(words[0]).name == "env" else words[:1]
        found = shutil.which(named[0], path=environment()["PATH"]) if named else None
        return _why_not(Path(found), depth + 1) if found else ""
    whole = program.read_bytes()
    if not whole.startswith(b"\x7fELF"):
        return ""  # the program cannot be started, and that is told then
    if whole[4:5] != _64_BIT:
        return "it is no 64-bit program and keeps the machine's clock"
    interpreter = _interpreter(whole)
    if interpreter is None:
        return "it is linked statically and asks the kernel for the time"
    if not _GLIBC.search(interpreter):
        loader = interpreter.decode(errors="replace")
        return f"its loader is {loader}, not glibc's, and it keeps the machine's clock"
    return "it is written in Go and asks the kernel for the time" if _GO in whole else ""


def _interpreter(elf: bytes) -> bytes | None:
    """The loader that a 64-bit program names (elf(5)); None: it has none."""
    try:
        (table,) = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
        for place in range(table, table + size * count, size):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, place)
            if kind == _INTERPRETER:
                return elf[offset : offset + length].rstrip(b"\0")
    except struct.error:
        return None
    return None
