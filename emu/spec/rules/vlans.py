"""Rules for VLANs."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic, unknown_name
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.spec.vlans import MOST_VLANS, NO_VLAN, vlans_of


def their_hosts_exist(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().host)
    for vid, hosts in spec.vlans.items():
        for host in hosts:
            if host not in known:
                text = unknown_name("host", host, known)
                yield Diagnostic(("vlans", vid), text, about=(("topology",),))


def a_switch_knows_them_all(spec: Spec) -> Iterator[Diagnostic]:
    if len(spec.vlans) > MOST_VLANS:
        text = f"{len(spec.vlans)} VLANs are more than the {MOST_VLANS} that a switch knows"
        yield Diagnostic(("vlans",), text)


def hosts_of_several_choose_one(spec: Spec) -> Iterator[Diagnostic]:
    for host in spec.topology.build().host:
        own = vlans_of(spec.vlans, host)
        if len(own) > 1 and not spec.host(host).nic.vlan:
            named = " and ".join(map(str, own))
            yield Diagnostic(
                for_host(spec, host, "nic", "vlan"),
                f"{host} is in the VLANs {named}, so its packets need a tag; set one of them",
                about=(("vlans",),),
            )


def tags_name_vlans(spec: Spec) -> Iterator[Diagnostic]:
    """A tag that is none of the host's VLANs is a mistake worth emulating; one that no VLAN has is
    a slip of the pen."""
    if not spec.vlans:
        return
    for host in spec.topology.build().host:
        vid = spec.host(host).nic.vlan
        if vid and vid not in spec.vlans and vlans_of(spec.vlans, host) != (NO_VLAN,):
            known = ", ".join(map(str, spec.vlans))
            yield Diagnostic(
                for_host(spec, host, "nic", "vlan"),
                f"there is no VLAN {vid}; vlans has {known}",
                about=(("vlans",),),
            )


RULES = (
    their_hosts_exist,
    a_switch_knows_them_all,
    hosts_of_several_choose_one,
    tags_name_vlans,
)
