"""What must hold for captures and checks: they name what there is, and checks can fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emu.spec.check import Check
from emu.spec.finding import Finding, did_you_mean, there_is_no
from emu.spec.scenario import Spec
from emu.units import write_rate, write_time


def captured_ports_exist(spec: Spec) -> Iterator[Finding]:
    known = list(spec.topology.build().port_named)
    for index, name in enumerate(spec.capture):
        if name != "all" and name not in known:
            hint = did_you_mean(name, known) or f"; ports are called like {known[0]}, or all"
            text = f"there is no port {name!r}{hint}"
            yield Finding(("capture", index), text, about=(("topology",),))


def checked_flows_exist(spec: Spec) -> Iterator[Finding]:
    known = {"flow": list(_flows(spec)), "traffic": [entry.name for entry in spec.traffic]}
    for index, check in enumerate(spec.verify):
        for kind, key, name in _named(check):
            if name not in known[key]:
                text = there_is_no(f"{key} called", name, known[key])
                yield Finding(("verify", index, kind, key), text, about=(("traffic",),))


def _named(check: Check) -> Iterator[tuple[str, str, str]]:
    """Kind, key and name of what a check speaks of."""
    if check.goodput is not None:
        yield "goodput", "flow", check.goodput.flow
    if check.finish is not None and check.finish.flow is not None:
        yield "finish", "flow", check.finish.flow
    if check.finish is not None and check.finish.traffic is not None:
        yield "finish", "traffic", check.finish.traffic


def checked_goodput_can_be_reached(spec: Spec) -> Iterator[Finding]:
    flows = _flows(spec)
    for index, check in enumerate(spec.verify):
        if check.goodput is None or check.goodput.at_least_bps is None:
            continue
        rate_bps = _slowest_link(spec, flows.get(check.goodput.flow, ()))
        if rate_bps is not None and check.goodput.at_least_bps > rate_bps:
            yield Finding(
                ("verify", index, "goodput", "at_least"),
                f"the flow's link carries {write_rate(rate_bps)} at most; lower at_least",
                about=(("traffic",), ("topology",)),
            )


def _slowest_link(spec: Spec, hosts: Iterable[str]) -> int | None:
    topology = spec.topology.build()
    ports = [topology.ports[host][0] for host in hosts if host in topology.host]
    return min((topology.cable[port].rate_bps for port in ports), default=None)


def checked_priorities_carry_traffic(spec: Spec) -> Iterator[Finding]:
    """On InfiniBand every lane is lossless, and whichever carries the traffic will do."""
    if spec.fabric != "roce":
        return
    carried = {
        spec.host(source).nic.priority if entry.priority is None else entry.priority
        for entry in spec.traffic
        for source in entry.senders
    }
    for index, check in enumerate(spec.verify):
        if check.lossless is not None and check.lossless.priority not in carried:
            there = " and ".join(map(str, sorted(carried))) or "none"
            yield Finding(
                ("verify", index, "lossless", "priority"),
                f"no flow runs on priority {check.lossless.priority}, so the check could not "
                f"fail; flows run on {there}",
                about=(("traffic",), ("hosts",)),
            )


def checked_times_are_in_the_run(spec: Spec) -> Iterator[Finding]:
    for index, check in enumerate(spec.verify):
        if check.finish is not None and check.finish.by_ps > spec.time_limit_ps:
            yield Finding(
                ("verify", index, "finish", "by"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "check earlier, or raise time_limit",
                about=(("time_limit",),),
            )


def _flows(spec: Spec) -> dict[str, tuple[str, str]]:
    """Source and destination of each flow, by its name."""
    return {name: pair for entry in spec.traffic for name, pair in entry.ends(spec.seed).items()}


RULES = (
    captured_ports_exist,
    checked_flows_exist,
    checked_goodput_can_be_reached,
    checked_priorities_carry_traffic,
    checked_times_are_in_the_run,
)
