"""Options of several verbs, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from emu.clocks import AUTO, CLOCKS, VIRTUAL
from emu.limits import MOST_THREADS
from emu.models import MODELS, PACKETS

C = TypeVar("C", bound=Callable[..., Any])

spec_argument = click.argument("path", metavar="SPEC", type=click.Path(path_type=Path))

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the spec, e.g. --set switches.ecn.kmin=50KB. May be repeated.",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document to stdout, nothing else."
)

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print no progress; only results and errors."
)


_CLOCKS_HELP = " ".join(f"{clock.name}: {clock.how}." for clock in CLOCKS.values())
AUTO_HELP = (
    f"{AUTO}: exact where this machine can build labs and the spec suits one, else virtual; real "
    f"for the kernel's TCP and RED. {_CLOCKS_HELP}"
)

clock_option = click.option(
    "--clock",
    type=click.Choice(list(CLOCKS)),
    default=VIRTUAL.name,
    show_default=True,
    help=_CLOCKS_HELP,
)
"""The clock that a command runs on."""

auto_clock_option = click.option(
    "--clock",
    type=click.Choice([AUTO, *CLOCKS]),
    default=AUTO,
    show_default=True,
    help=AUTO_HELP,
)
"""The same for commands that choose it by the spec and the machine."""


model_option = click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    default=PACKETS.name,
    show_default=True,
    help=" ".join(f"{model.name}: {model.how}." for model in MODELS.values()),
)


def names_of(text: str | None) -> tuple[str, ...]:
    """The names in `a,b`."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def is_given(option: str) -> bool:
    """Whether the command line has the option."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


threads_option = click.option(
    "--threads",
    type=click.IntRange(1, MOST_THREADS),
    help="Threads that run the virtual clock; the results are the same with any number.  "
    "[default: as many as pay for themselves]",
)

seeds_option = click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of seeds to run with: the spec's seed and those after it.",
)

workers_option = click.option(
    "--workers",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Processes on this machine. [default: as many as it has cores]",
)

scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Use the Dask cluster at this address, as tcp://10.0.0.1:8786.",
)

out_option = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for results and captures.  [default: out/<name of the spec>]",
)

lab_argument = click.argument("lab", metavar="[LAB]", required=False)
"""The name of a running lab; not needed if there is only one."""

lab_option = click.option("--lab", metavar="LAB", help="The lab to use, if several are up.")
