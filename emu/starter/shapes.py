"""A number of hosts -> the keys of a topology with exactly this number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod, sqrt
from typing import Any

from emu.errors import UsageError
from emu.starter.options import StarterOptions

_MOST_ON_A_SWITCH = 256
"""Half of a switch's ports; the other half can lead to spines."""
_MOST_SWITCHES = 256
_GPUS = 8


def topology_of(options: StarterOptions) -> dict[str, Any]:
    """The `topology:` section without cables. Raises UsageError if the number of hosts does not
    fit."""
    refuse_unused_options(options)
    return {"kind": options.topology, **SHAPES[options.topology](options)}


def refuse_unused_options(options: StarterOptions) -> None:
    """Refuses options that this kind of topology does not have."""
    of_kind = {
        "switches": ("leaf-spine", "ring", "parking-lot"),
        "spines": ("leaf-spine", "rail"),
        "gpus": ("rail",),
        "dimensions": ("torus",),
    }
    for option, kinds in of_kind.items():
        if getattr(options, option) and options.topology not in kinds:
            raise UsageError(
                f"--{option} is for {' and '.join(kinds)}, not for {options.topology}; leave it out"
            )


def _leaf_spine(options: StarterOptions) -> dict[str, Any]:
    """As many spines as a leaf has hosts: no leaf is oversubscribed."""
    if options.switches is None:
        leaves = options.hosts // _hosts_on_each(options.hosts)
    else:
        leaves = options.switches
    on_each = _divided(options, leaves, "leaves")
    spines = options.spines or min(on_each, _MOST_SWITCHES)
    return {"spines": spines, "leaves": leaves, "hosts_per_leaf": on_each}


def _hosts_on_each(hosts: int) -> int:
    """Somewhat more hosts on a switch than switches: 4 on 2, 8 on 8, 32 on 32."""
    fitting = [
        size
        for size in range(1, min(hosts, _MOST_ON_A_SWITCH) + 1)
        if hosts % size == 0 and hosts // size <= _MOST_SWITCHES and size >= sqrt(hosts)
    ]
    if not fitting:
        raise UsageError(
            f"{hosts} hosts cannot be divided among equal leaves; take {_even_more(hosts)}, or "
            "another --topology"
        )
    return fitting[0]


def _even_more(hosts: int) -> int:
    """The next number of hosts that eight leaves divide."""
    return -(-hosts // 8) * 8


def _fat_tree(options: StarterOptions) -> dict[str, Any]:
    sizes = {k**3 // 4: k for k in range(2, 51, 2)}
    if options.hosts not in sizes:
        near = _nearest(options.hosts, sizes)
        raise UsageError(f"no fat tree has {options.hosts} hosts; take --hosts {near}")
    return {"k": sizes[options.hosts]}


def _nearest(hosts: int, sizes: Iterable[int]) -> str:
    below = max((size for size in sizes if size < hosts), default=None)
    above = min((size for size in sizes if size > hosts), default=None)
    return " or ".join(str(size) for size in (below, above) if size is not None)


def _rail(options: StarterOptions) -> dict[str, Any]:
    rails = options.gpus or _GPUS
    servers = _divided(options, rails, "GPUs of a server (--gpus)")
    return {
        "servers": servers,
        "rails": rails,
        "spines": options.spines or min(servers, _MOST_SWITCHES),
    }


def _dumbbell(options: StarterOptions) -> dict[str, Any]:
    return {"hosts_per_side": _divided(options, 2, "sides")}


def _in_a_row(least: int) -> Callable[[StarterOptions], dict[str, Any]]:
    """The number of switches, four if the hosts divide evenly among them."""

    def keys(options: StarterOptions) -> dict[str, Any]:
        fitting = (n for n in (4, *range(least, 65)) if options.hosts % n == 0 and n >= least)
        switches = options.switches or next(fitting, least)
        return {
            "switches": switches,
            "hosts_per_switch": _divided(options, switches, "switches (--switches)"),
        }

    return keys


def _torus(options: StarterOptions) -> dict[str, Any]:
    dimensions = options.dimensions or (3, 3)
    on_each = _divided(options, prod(dimensions), "switches (--dimensions)")
    return {"dimensions": list(dimensions), "hosts_per_switch": on_each}


def _divided(options: StarterOptions, parts: int, what: str) -> int:
    if options.hosts % parts:
        fewer, more = options.hosts // parts * parts, -(-options.hosts // parts) * parts
        fitting = " or ".join(str(hosts) for hosts in (fewer, more) if hosts)
        raise UsageError(
            f"{options.hosts} hosts cannot be divided evenly among {parts} {what}; take "
            f"--hosts {fitting}"
        )
    return options.hosts // parts


SHAPES: dict[str, Callable[[StarterOptions], dict[str, Any]]] = {
    "leaf-spine": _leaf_spine,
    "fat-tree": _fat_tree,
    "rail": _rail,
    "dumbbell": _dumbbell,
    "ring": _in_a_row(3),
    "parking-lot": _in_a_row(2),
    "torus": _torus,
}
