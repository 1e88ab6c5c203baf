"""Rules for a host and its NIC."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.congestion_control import CONTROLS
from emu.spec.congestion_control.roce_cc_ecn import RoceCcEcn
from emu.spec.diagnostic import Diagnostic, unknown_name
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.units import write_rate


def nodes_exist(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().host)
    for name in spec.hosts.nodes:
        if name not in known:
            text = unknown_name("host", name, known)
            yield Diagnostic(("hosts", "nodes", name), text, about=(("topology",),))


def slowest_rate_is_below_the_link_s(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    known: dict[int, int | None] = {}
    for name in topology.host:
        nic = spec.host(name).nic
        rate_bps = topology.cable[topology.ports[name][0]].rate_bps
        control = nic.control(nic.cc)
        if id(nic) not in known:  # most hosts share theirs
            key = control.slowest
            known[id(nic)] = None if key is None else round(control.parameters()[key])
        slowest_bps = known[id(nic)]
        if slowest_bps is not None and slowest_bps > rate_bps:
            section = CONTROLS[nic.cc].key
            assert section is not None, "a control with a lowest rate has a key for it"
            yield Diagnostic(
                for_host(spec, name, "nic", section, str(control.slowest)),
                f"{write_rate(slowest_bps)} is more than hosts' links of "
                f"{write_rate(rate_bps)} carry, so no flow could be slowed; lower "
                f"{control.slowest}",
                about=(("topology",),),
            )


def who_tolerates_reordering_keeps_packets(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().host:
        nic = spec.host(name).nic
        if nic.reordering and not nic.recovery_scheme.keeps_early_packets:
            yield Diagnostic(
                for_host(spec, name, "nic", "reordering"),
                f"recovery: {nic.recovery} discards packets that arrive early, so none may "
                "overtake another; use recovery: selective-repeat, or take this out",
                about=(for_host(spec, name, "nic", "recovery"),),
            )


_COPIES = {
    "copy_rate_bps": "copy",
    "copy_latency_ps": "copy_latency",
    "copy_piece_bytes": "copy_piece",
}


def only_staged_paths_copy(spec: Spec) -> Iterator[Diagnostic]:
    written = {"": spec.hosts, **spec.hosts.nodes}
    for name, host in written.items():
        if host.path is None or host.path.is_staged:
            continue
        for field, key in _COPIES.items():
            if field in host.path.model_fields_set:
                path = ("hosts", *(("nodes", name) if name else ()), "path")
                yield Diagnostic(
                    (*path, key),
                    "gpudirect copies nothing; take this out, or use kind: host-staged",
                    about=((*path, "kind"),),
                )


def servers_are_whole(spec: Spec) -> Iterator[Diagnostic]:
    hosts, gpus = len(spec.topology.build().hosts), spec.hosts.gpus
    if gpus is None and "scale_up" in spec.hosts.model_fields_set:
        text = "joins the GPUs of a server, and each host stands alone; add gpus, e.g. gpus: 8"
        yield Diagnostic(("hosts", "scale_up"), text)
    if gpus is not None and hosts % gpus:
        yield Diagnostic(
            ("hosts", "gpus"),
            f"{hosts} hosts are not a whole number of servers of {gpus} GPUs",
            about=(("topology",),),
        )


def pcps_have_a_tag_to_be_told_in(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().host if spec.fabric_kind.is_ethernet else ():
        nic = spec.host(name).nic
        if nic.parameters_of(RoceCcEcn).cnp_802p_prio is not None and nic.vlan is None:
            yield Diagnostic(
                for_host(spec, name, "nic", "roce_cc_ecn", "cnp_802p_prio"),
                "frames without a VLAN tag have no PCP; give the NIC one (vlan: 0 is a priority "
                "tag), or take this out and use cnp_dscp",
                about=(for_host(spec, name, "nic", "vlan"),),
                idle_if_inherited=True,
            )


RULES = (
    only_staged_paths_copy,
    nodes_exist,
    servers_are_whole,
    who_tolerates_reordering_keeps_packets,
    slowest_rate_is_below_the_link_s,
    pcps_have_a_tag_to_be_told_in,
)
