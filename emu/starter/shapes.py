"""A number of hosts -> the keys of a topology with exactly this number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod, sqrt
from typing import Any

from emu.errors import UsageError
from emu.starter.wishes import Wishes

_MOST_ON_A_SWITCH = 128
_MOST_SWITCHES = 64
_GPUS = 8


def topology_of(wishes: Wishes) -> dict[str, Any]:
    """The `topology:` section without cables. Raises UsageError if the number of hosts does not
    fit."""
    refuse_strangers(wishes)
    return {"kind": wishes.topology, **SHAPES[wishes.topology](wishes)}


def refuse_strangers(wishes: Wishes) -> None:
    """Refuses options that this kind of topology does not have."""
    of_kind = {
        "switches": ("leaf-spine", "ring", "parking-lot"),
        "spines": ("leaf-spine", "rail"),
        "gpus": ("rail",),
        "dimensions": ("torus",),
    }
    for option, kinds in of_kind.items():
        if getattr(wishes, option) and wishes.topology not in kinds:
            raise UsageError(
                f"--{option} is for {' and '.join(kinds)}, not for {wishes.topology}; leave it out"
            )


def _leaf_spine(wishes: Wishes) -> dict[str, Any]:
    """As many spines as a leaf has hosts: no leaf is oversubscribed."""
    if wishes.switches is None:
        leaves = wishes.hosts // _hosts_on_each(wishes.hosts)
    else:
        leaves = wishes.switches
    on_each = _divided(wishes, leaves, "leaves")
    spines = wishes.spines or min(on_each, _MOST_SWITCHES)
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


def _fat_tree(wishes: Wishes) -> dict[str, Any]:
    sizes = {k**3 // 4: k for k in range(2, 17, 2)}
    if wishes.hosts not in sizes:
        near = _nearest(wishes.hosts, sizes)
        raise UsageError(f"no fat tree has {wishes.hosts} hosts; take --hosts {near}")
    return {"k": sizes[wishes.hosts]}


def _nearest(hosts: int, sizes: Iterable[int]) -> str:
    below = max((size for size in sizes if size < hosts), default=None)
    above = min((size for size in sizes if size > hosts), default=None)
    return " or ".join(str(size) for size in (below, above) if size is not None)


def _rail(wishes: Wishes) -> dict[str, Any]:
    rails = wishes.gpus or _GPUS
    servers = _divided(wishes, rails, "GPUs of a server (--gpus)")
    return {
        "servers": servers,
        "rails": rails,
        "spines": wishes.spines or min(servers, _MOST_SWITCHES),
    }


def _dumbbell(wishes: Wishes) -> dict[str, Any]:
    return {"hosts_per_side": _divided(wishes, 2, "sides")}


def _in_a_row(least: int) -> Callable[[Wishes], dict[str, Any]]:
    """The number of switches, four if the hosts divide evenly among them."""

    def keys(wishes: Wishes) -> dict[str, Any]:
        fitting = (n for n in (4, *range(least, 65)) if wishes.hosts % n == 0 and n >= least)
        switches = wishes.switches or next(fitting, least)
        return {
            "switches": switches,
            "hosts_per_switch": _divided(wishes, switches, "switches (--switches)"),
        }

    return keys


def _torus(wishes: Wishes) -> dict[str, Any]:
    dimensions = wishes.dimensions or (3, 3)
    on_each = _divided(wishes, prod(dimensions), "switches (--dimensions)")
    return {"dimensions": list(dimensions), "hosts_per_switch": on_each}


def _divided(wishes: Wishes, parts: int, what: str) -> int:
    if wishes.hosts % parts:
        fewer, more = wishes.hosts // parts * parts, -(-wishes.hosts // parts) * parts
        fitting = " or ".join(str(hosts) for hosts in (fewer, more) if hosts)
        raise UsageError(
            f"{wishes.hosts} hosts cannot be divided evenly among {parts} {what}; take "
            f"--hosts {fitting}"
        )
    return wishes.hosts // parts


SHAPES: dict[str, Callable[[Wishes], dict[str, Any]]] = {
    "leaf-spine": _leaf_spine,
    "fat-tree": _fat_tree,
    "rail": _rail,
    "dumbbell": _dumbbell,
    "ring": _in_a_row(3),
    "parking-lot": _in_a_row(2),
    "torus": _torus,
}
