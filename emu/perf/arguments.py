"""Turns the options of `emu perf` into hosts and message sizes, and refuses impossible ones.

The rules are perftest's. A datagram is at most one MTU long: with UD, the MTU limits the default
size and the sizes of -a, and a longer -s is refused. Atomics have one size. Each test can use every
transport that carries its operation.
"""

from __future__ import annotations

from emu.errors import UsageError
from emu.perf.benchmark import Benchmark, Ends
from emu.spec.diagnostic import unknown_name
from emu.spec.groups import expanded
from emu.spec.model import Spec
from emu.spec.rules.operations import ATOMIC_BYTES, CARRIED

BANDWIDTH_BYTES, LATENCY_BYTES = 65536, 2
"""The default sizes of messages."""
_LARGEST = 1 << 23
"""The largest size of -a."""


def chosen_ends(fabric: Spec, src: str | None, dst: str | None) -> Ends:
    """The two hosts; by default the first and the last of the fabric. Raises UsageError."""
    hosts = list(fabric.topology.build().host)
    if len(hosts) < 2:
        raise UsageError(f"a benchmark needs two hosts; {fabric.name} has one")
    ends = Ends(
        _host(fabric, "--from", src) if src else hosts[0],
        _host(fabric, "--to", dst) if dst else hosts[-1],
    )
    if ends.src == ends.dst:
        raise UsageError(f"{ends.src} would send to itself; name another host by --from or --to")
    return ends


def _host(fabric: Spec, option: str, name: str) -> str:
    """The host that an option names. Raises UsageError for an unknown host or several hosts."""
    topology = fabric.topology.build()
    meant = expanded((name,), topology)
    if meant[0] not in topology.host:
        raise UsageError(f"{option}: {unknown_name('host', name, list(topology.host))}")
    if len(meant) > 1:
        raise UsageError(f"{option} {name}: is {len(meant)} hosts; name one, e.g. {meant[0]}")
    return meant[0]


def chosen_sizes(
    benchmark: Benchmark, fabric: Spec, ends: Ends, *, size_bytes: int | None, every: bool
) -> list[int]:
    """The sizes for -s, for -a or for neither. Raises UsageError for an impossible size."""
    if size_bytes is not None and every:
        raise UsageError(f"-s {size_bytes} and -a: these exclude each other; leave one of them out")
    _refuse_transport(benchmark)
    if benchmark.verb.is_atomic:
        return _of_atomics(size_bytes, every)
    most = _most_bytes(benchmark, fabric, ends)
    if every:
        return [1 << power for power in range(1, most.bit_length())]
    if size_bytes is None:
        return [LATENCY_BYTES if benchmark.is_latency else min(BANDWIDTH_BYTES, most)]
    if benchmark.transport == "ud" and size_bytes > most:
        raise UsageError(
            f"-s {size_bytes} with -c UD: a datagram is one packet, and between {ends.src} and "
            f"{ends.dst} the MTU is {most}; send less, or use -c UC"
        )
    return [size_bytes]


def _refuse_transport(benchmark: Benchmark) -> None:
    op, transport = benchmark.verb.value, benchmark.transport
    if op in CARRIED.get(transport, (op,)):
        return
    others = [other for other in ("rc", "uc", "ud") if op in CARRIED.get(other, (op,))]
    remedy = " or ".join(f"-c {other.upper()}" for other in others)
    raise UsageError(f"-c {transport.upper()} has no {op}; measure {benchmark.name} with {remedy}")


def _of_atomics(size_bytes: int | None, every: bool) -> list[int]:
    if every or size_bytes not in (None, ATOMIC_BYTES):
        option = "-a" if every else f"-s {size_bytes}"
        raise UsageError(f"{option}: atomics work only on a word of 8 bytes; leave it out")
    return [ATOMIC_BYTES]


def _most_bytes(benchmark: Benchmark, fabric: Spec, ends: Ends) -> int:
    if benchmark.transport != "ud":
        return _LARGEST
    return min(fabric.host(end).nic.mtu for end in (ends.src, ends.dst))
