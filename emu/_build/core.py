"""Builds the C core: one extension module of every C file of the switches and the NIC.

    fabric_api.h, nic_api.h … ─cffi─▶ _core.c ─┐
    emu/core/*/*.c ────────────────────────────┴─compiler─▶ objects ─linker─▶ emu/_core.*.so

The headers are plain C declarations: the compiler reads them as they are,
and cffi the same text without its preprocessor lines, so Python and C cannot
disagree about them. Constants come from the enums of further headers.

Only what changed is compiled again: the compiler writes down which headers each
object was made from (`-MMD`), and every object also depends on this file.
Everything runs in the root of the source tree with relative paths, so that the
tree may have any name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

MODULE = "emu._core"
ROOT = Path(__file__).parents[2]

CORE = Path("emu/core")
_INTERFACES = tuple(
    CORE / name
    for name in (
        "headers/roce.h",
        "sim/parameter.h",
        "link/port_config.h",
        "switch/switch_config.h",
        "switch/switch_api.h",
        "nic/nic_api.h",
        "nic/verbs_api.h",
        "nic/ipoib.h",
        "uverbs/cm_messages.h",
        "uverbs/messages.h",
        "uverbs/server.h",
        "fault/fault_api.h",
        "counters/counter.h",
        "observe/counters.h",
        "flow_model/flow_model_api.h",
        "api/fabric_api.h",
        "api/processes_api.h",
        "api/primitives.h",
        "driver/af_packet_driver.h",
        "driver/exact_driver.h",
    )
)
_CONSTANTS = tuple(
    CORE / name
    for name in (
        "sim/frame.h",
        "fault/packet_choice.h",
        "headers/lrh.h",
        "link/credit.h",
        "link/flow_control.h",
        "link/framing.h",
        "link/pause_message.h",
        "link/qos_map.h",
        "switch/forwarding.h",
        "switch/queue_discipline.h",
        "observe/latency_histogram.h",
        "observe/sampler.h",
        "uverbs/rings.h",
    )
)
"""Headers of which Python reads the enums alone."""
_GLUE = Path(f"build/_core_{sys.implementation.cache_tag.replace('-', '_')}.c")
"""One for each version of Python: its object is made with that version's headers."""
_THIS_FILE = Path(__file__).relative_to(ROOT)

_COMPILER = os.environ.get("CC", "gcc")
_FLAGS = (
    "-std=gnu11",
    "-fPIC",
    "-fvisibility=hidden",
    # No a * b + c in one rounding: where a processor has that, rates would be others.
    "-ffp-contract=off",
    f"-I{CORE}",
)
_WARNINGS = ("-Wall", "-Wextra", "-Werror")
_LIBRARIES = ("-ldeflate", "-lm")


class BuildError(Exception):
    """The compiler refused. Its words are the message."""


@dataclass(frozen=True)
class Variant:
    """One way to build the same core. Its objects lie in `build/<name>`."""

    name: str
    flags: tuple[str, ...]
    compiler: str = _COMPILER

    @property
    def folder(self) -> Path:
        return Path("build") / self.name


RELEASE = Variant("release", ("-O3", "-flto=auto"))
ANALYZE = Variant("analyze", ("-O2", "-fanalyzer"))
SANITIZE = Variant(
    "sanitize",
    (
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ),
)
UNDEFINED = Variant(
    "undefined",
    ("-O1", "-g", "-fsanitize=undefined", "-fsanitize-trap=undefined"),
    compiler="clang",
)
"""clang finds undefined behaviour that gcc does not look for, such as arithmetic with NULL. It
needs no library for that: the program stops with SIGILL."""
THREADS = Variant("threads", ("-O1", "-g", "-fsanitize=thread"))
"""Finds what two threads use at the same time without an order between them."""
COVERAGE = Variant("coverage", ("-O1", "-g", "--coverage", "-fprofile-update=atomic"))
"""Counts how often each line ran, in files beside the objects."""
VARIANTS = {
    variant.name: variant for variant in (RELEASE, ANALYZE, SANITIZE, UNDEFINED, THREADS, COVERAGE)
}


def target(variant: Variant) -> Path:
    """Where developers find a variant: the release in the package, others beside their objects."""
    folder = Path("emu") if variant is RELEASE else variant.folder
    return folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"


def sources() -> list[Path]:
    """The C files of the core, relative to the root."""
    return _files("*.c")


def inputs() -> list[Path]:
    """Every file the core is made from, relative to the root."""
    return sources() + _files("*.h") + _files("*.def")


def _files(pattern: str) -> list[Path]:
    return [path.relative_to(ROOT) for path in sorted((ROOT / CORE).glob(f"*/{pattern}"))]


def build(variant: Variant, module: Path) -> bool:
    """Brings `module` up to date (relative paths start at the root).

    False when it was. Raises BuildError.
    """
    if is_stale(_GLUE, (*_CONSTANTS, *_INTERFACES, _THIS_FILE)):
        _write_glue()
    objects = compile_all(variant, [_GLUE, *sources()])
    # A folder is younger than the module when a source file came or went.
    folders = {path.parent for path in sources()}
    if not is_stale(module, (*objects, *folders)):
        return False
    link_library(variant, objects, module, _LIBRARIES)
    return True


def compile_all(variant: Variant, files: Sequence[Path]) -> list[Path]:
    """Brings the objects made from these C files up to date. Paths start at the root."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(partial(_compile, variant), files))


def link_program(variant: Variant, objects: Sequence[Path], program: Path) -> None:
    """Brings a program made of these objects up to date. Raises BuildError."""
    if is_stale(program, objects):
        _run(
            [variant.compiler, *variant.flags, *map(str, objects), *_LIBRARIES, "-o", str(program)]
        )


def _write_glue() -> None:
    """Writes the C code between Python and the core."""
    from cffi import FFI  # slow to import, seldom needed

    ffi = FFI()
    for path in _INTERFACES:
        ffi.cdef(declarations((ROOT / path).read_text()))
    for path in _CONSTANTS:
        ffi.cdef(enums((ROOT / path).read_text()))
    headers = (path.relative_to(CORE) for path in (*_CONSTANTS, *_INTERFACES))
    ffi.set_source(MODULE, "".join(f'#include "{header}"\n' for header in headers))
    (ROOT / _GLUE).parent.mkdir(parents=True, exist_ok=True)
    ffi.emit_c_code(str(ROOT / _GLUE))
    (ROOT / _GLUE).touch()


def declarations(header: str) -> str:
    """A plain header's text without its preprocessor lines."""
    return "\n".join(line for line in header.splitlines() if not line.lstrip().startswith("#"))


def enums(header: str) -> str:
    """A header's enums. Their values are left to the compiler."""
    text = _COMMENT.sub("", declarations(header))
    return "".join(
        f"{name} {{ {_VALUE.sub(r'= ...', members)} }};\n" for name, members in _ENUM.findall(text)
    )


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ENUM = re.compile(r"^(enum(?: \w+)?) \{([^}]*)\}", re.MULTILINE)
_VALUE = re.compile(r"=[^,]*")


def _compile(variant: Variant, source: Path) -> Path:
    """Brings the object made from `source` up to date and returns it."""
    made = variant.folder / source.with_suffix(".o")
    if is_stale(made, _made_from(source, made)):
        (ROOT / made).parent.mkdir(parents=True, exist_ok=True)
        warnings = () if source == _GLUE else _WARNINGS
        include = f"-I{sysconfig.get_path('include')}"
        flags = (*_FLAGS, *variant.flags, *warnings, include, "-MMD")
        _run([variant.compiler, *flags, "-c", str(source), "-o", str(made)])
    return made


def _made_from(source: Path, made: Path) -> list[Path]:
    """The files an object was made from the last time; at least its source and this file."""
    dependencies = ROOT / made.with_suffix(".d")
    rule = dependencies.read_text().replace("\\\n", " ") if dependencies.exists() else ":"
    return [source, _THIS_FILE, *map(Path, rule.partition(":")[2].split())]


def link_library(
    variant: Variant, objects: Sequence[Path], library: Path, others: Sequence[str] = ()
) -> None:
    """Replaces the library in one step: a process that runs with the old one keeps it.

    `others`: options for the libraries that it needs. Raises BuildError.
    """
    (ROOT / library).parent.mkdir(parents=True, exist_ok=True)
    fresh = variant.folder / "linked.so"
    paths = map(str, objects)
    _run([variant.compiler, "-shared", *variant.flags, *paths, *others, "-o", str(fresh)])
    (ROOT / fresh).replace(ROOT / library)


def is_stale(made: Path, made_from: Iterable[Path]) -> bool:
    """Whether `made` is older than a file it is made from. One that is gone counts as changed."""
    try:
        since = (ROOT / made).stat().st_mtime_ns
        return any((ROOT / path).stat().st_mtime_ns > since for path in made_from)
    except FileNotFoundError:
        return True


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed; run vagrant/provision.sh") from None
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
