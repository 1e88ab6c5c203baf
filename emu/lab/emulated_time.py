"""Gives a program on a lab's host an emulated clock, so that it shows the fabric's rates.

    LD_PRELOAD=libfaketimeMT.so.1  FAKETIME="+0 x0.001"      at slowdown 1000

libfaketime replaces the C library's clocks and waits: `clock_gettime`, `gettimeofday`, `nanosleep`,
`select`, `poll`. So durations that the program measures, and its waits, are emulated time. It
cannot change:

- times that the kernel measures: of packets (SO_TIMESTAMP, used by ping and tcpdump), TCP's
  round trips and retransmission timeouts, the kernel's pacing (SO_MAX_PACING_RATE);
- programs that do not call the C library for the time: static ones, and those in Go;
- programs with more rights than their user, for which the loader ignores LD_PRELOAD;
- the time of day: it differs between programs, so that only durations can be compared.

A program that is known to show such times is refused.
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
"""Program -> the values in its output that the kernel's clock has measured."""
_IPERF3 = (
    (re.compile(r"-[^-]*J.*|--json.*"), "its JSON has TCP's round trips by the kernel's clock"),
    (re.compile(r"--fq-rate.*"), "the kernel would pace by its own clock"),
)


def emulated_time(command: Sequence[str], slowdown: float) -> Mapping[str, str]:
    """The variables to add to the program's environment.

    Raises UsageError if some of its times would stay real, HostError without libfaketime.
    """
    _refuse(command)
    factor = f"{1 / slowdown:.12g}"
    return {"LD_PRELOAD": str(library()), "FAKETIME": f"+0 x{factor}"}


def library() -> Path:
    """The path of libfaketime. Raises HostError if it is not installed."""
    for path in Path("/usr/lib").glob(_LIBRARY):
        return path
    raise HostError("libfaketime is not installed", remedy=_REMEDY)


def why_missing() -> str:
    """Why `emu exec --emulated` is not possible here; empty if it is."""
    try:
        library()
    except HostError as error:
        return error.what
    return ""


def _refuse(command: Sequence[str]) -> None:
    name = Path(command[0]).name
    if name in _BY_THE_KERNEL:
        raise _real_time_error(name, f"{_BY_THE_KERNEL[name]} are measured by the kernel's clock")
    if name == "iperf3":
        for option, why in _IPERF3:
            wrong = [word for word in command[1:] if option.fullmatch(word)]
            if wrong:
                raise _real_time_error(f"{name} {wrong[0]}", why)
    program = shutil.which(command[0], path=environment()["PATH"])
    if program is None:
        return
    try:
        reason = _why_not(Path(program))
    except OSError as error:
        reason = f"emu cannot read it ({error.strerror}); it may use the machine's clock"
    if reason:
        raise _real_time_error(command[0], reason)


def _real_time_error(what: str, why: str) -> UsageError:
    return UsageError(
        f"--emulated {what}: {why}, which stays real; leave --emulated out, and divide times by "
        "the slowdown (see `emu status`)"
    )


def _why_not(program: Path, depth: int = 0) -> str:
    """Why libfaketime has no effect on a program; empty if it has one."""
    if program.stat().st_mode & 0o6000 or "security.capability" in os.listxattr(program):
        return (
            "it has more rights than you, so that the loader ignores libfaketime, and it uses the "
            "machine's clock"
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
        return ""  # the program cannot be started; starting it reports that
    if whole[4:5] != _64_BIT:
        return "it is not a 64-bit program and uses the machine's clock"
    interpreter = _interpreter(whole)
    if interpreter is None:
        return "it is statically linked and reads the kernel's clock"
    if not _GLIBC.search(interpreter):
        loader = interpreter.decode(errors="replace")
        return f"its loader is {loader}, not glibc's, and it uses the machine's clock"
    return "it is written in Go and reads the kernel's clock" if _GO in whole else ""


def _interpreter(elf: bytes) -> bytes | None:
    """The loader that a 64-bit ELF file names (elf(5)); None if it names none."""
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
