"""DCQCN with the steps of its paper on links that are much faster than the paper's.

A flow adds R_AI to its target rate at each increase timer, whatever the rate of its link. The
paper's values are for 40 Gbit/s. The table compares them with R_AI and R_HAI in proportion to the
link, measured on the virtual clock with an incast of three senders that takes 0.6 ms of the link
(25 KB for each Gbit/s from each):

    link              the incast ends after        another flow reaches 90 % again after
                      paper     in proportion      paper     in proportion
     40 Gbit/s        3.8 ms                       36 ms
    100 Gbit/s        5.9 ms    4.1 ms             38 ms     23 ms
    200 Gbit/s        7.9 ms    4.1 ms             39 ms     16 ms
    400 Gbit/s        9.3 ms    3.9 ms             39 ms     11 ms

A shorter increase timer does not help: below the CNP interval rates rise again between two CNPs,
and queues grow until ports pause. A smaller byte counter makes hyper increase begin sooner (at
1 MB the other flow recovers after 7 to 10 ms), but the incast ends no sooner. The defaults are the
paper's, because the control has the paper's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.congestion_control.dcqcn import Dcqcn
from emu.spec.diagnostic import dotted
from emu.spec.rules.idle_controls import unmarked
from emu.spec.rules.provenance import for_host, is_written
from emu.spec.scenario import Spec
from emu.units import format_rate, write_rate

PAPER_BPS = 40_000_000_000
_FAR_ABOVE = 2
_STEPS = ("rai", "rhai")


def small_steps(spec: Spec) -> Iterator[str]:
    """A warning for the first sender whose link is more than twice as fast as the paper's and for
    which the spec gives neither step."""
    for host in _with_dcqcn(spec):
        if settings := steps_in_proportion(spec, host):
            rate_bps, rai_bps = (
                _link_bps(spec, host),
                spec.host(host).nic.parameters_of(Dcqcn).rai_bps,
            )
            yield (
                f"{host} uses cc: dcqcn, whose rai and rhai are by default those published for "
                f"{format_rate(PAPER_BPS)}; on its {format_rate(rate_bps)} rates recover in "
                f"steps that are {rate_bps / PAPER_BPS:.3g} times smaller relative to the link; "
                f"set {' and '.join(settings)} for steps in proportion, or "
                f"hosts.nic.dcqcn.rai={write_rate(rai_bps)} to keep them"
            )
            return


def steps_in_proportion(spec: Spec, host: str) -> tuple[str, ...]:
    """Settings of a host's DCQCN, as after `--set`. None if its link is not much faster than the
    paper's, or if the spec gives a step."""
    dcqcn, rate_bps = spec.host(host).nic.parameters_of(Dcqcn), _link_bps(spec, host)
    if rate_bps <= _FAR_ABOVE * PAPER_BPS or _are_given(spec, host):
        return ()
    steps = zip(_STEPS, (dcqcn.rai_bps, dcqcn.rhai_bps), strict=True)
    return tuple(
        f"{dotted(for_host(spec, host, 'nic', 'dcqcn', key))}="
        f"{write_rate(step * rate_bps // PAPER_BPS)}"
        for key, step in steps
    )


def _link_bps(spec: Spec, host: str) -> int:
    topology = spec.topology.build()
    return topology.cable[topology.ports[host][0]].rate_bps


def _with_dcqcn(spec: Spec) -> Iterator[str]:
    """The senders that a mark may reach."""
    for host, why_not in unmarked(spec).items():
        if why_not is None and spec.host(host).nic.cc == "dcqcn":
            yield host


def _are_given(spec: Spec, host: str) -> bool:
    """Whether the spec gives a step."""
    sections = (("hosts", "nic", "dcqcn"), ("hosts", "nodes", host, "nic", "dcqcn"))
    return any(is_written(spec, (*section, key)) for section in sections for key in _STEPS)
