"""Thresholds that a spec leaves open at a switch port: derived values, reasons and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import SpecError
from emu.spec.derived import derived, late_curves
from emu.spec.model import Spec, spec_from_text
from emu.spec.rules.warnings import warnings_of
from topologies.graph import Port

ON = "pfc: on, ecn: on"
CC = "cc: dcqcn-nvidia"


def spec_of(switches: str, *, rate: str = "100Gbit", length: str = "5m", more: str = "") -> Spec:
    text = f"""
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: 4
  links: {{host: {{rate: {rate}, length: {length}}}}}
switches: {{{switches}}}
traffic: [{{name: flow, pattern: pair, from: h1, to: h2, size: 1MB}}]
{more}
"""
    return spec_from_text(text.encode(), source="test.emu.yml")


def port_of(spec: Spec) -> Port:
    return spec.topology.build().port_named["leaf1:h1"]


def curve(spec: Spec, queue: int = 3) -> tuple[int, int]:
    ecn = spec.port(port_of(spec)).ecn
    assert ecn is not None
    own = ecn.curve(queue)
    assert own is not None
    return own.kmin_bytes, own.kmax_bytes


@pytest.mark.parametrize("gbit", [25, 100, 200, 400, 800])
def test_thresholds_scale_with_the_rate(gbit: int) -> None:
    """Kmin is 100 KB and Kmax 400 KB for each 25 Gbit/s if the buffer has room."""
    spec = spec_of(f"{ON}, buffer: 64MB", rate=f"{gbit}Gbit")
    assert curve(spec) == (gbit * 4_000, gbit * 16_000)


def test_a_small_buffer_keeps_marks_before_pauses() -> None:
    """Kmax is the most that a single busy port may hold, and Kmin is a quarter of Kmax."""
    spec = spec_of(f"{ON}, buffer: 2MB")
    most = spec.shared_pool("leaf1") // 2
    assert curve(spec) == (most // 4, most // 4 * 4)


def test_a_static_xoff_bounds_kmin_and_kmax() -> None:
    spec = spec_of("pfc: {xoff: 96KB}, ecn: on, buffer: 32MB")
    assert curve(spec) == (24_000, 96_000)


def test_a_long_cable_adds_its_round_trip_to_kmin() -> None:
    """A 10 km cable has a round trip of 100 us, which is 1.25 MB at 100 Gbit/s."""
    spec = spec_of(f"{ON}, buffer: 64MB", length="10km")
    assert curve(spec) == (1_250_000, 5_000_000)


def test_kmin_of_a_slow_port_is_two_packets() -> None:
    """100 KB for each 25 Gbit/s is less than one packet at 1 Gbit/s."""
    spec = spec_of(f"{ON}, buffer: 64MB", rate="1Gbit")
    assert curve(spec) == (2 * spec.largest_frame_bytes, 8 * spec.largest_frame_bytes)


def test_kmax_follows_a_given_kmin() -> None:
    assert curve(spec_of("pfc: on, ecn: {kmin: 50KB}, buffer: 32MB")) == (50_000, 200_000)


def test_kmin_follows_a_given_kmax() -> None:
    assert curve(spec_of("pfc: on, ecn: {kmax: 200KB}, buffer: 32MB")) == (50_000, 200_000)


def test_kmax_of_one_queue_follows_its_kmin() -> None:
    spec = spec_of("pfc: on, ecn: {kmin: 80KB, queues: {3: {kmin: 20KB}}}, buffer: 32MB")
    assert (curve(spec, 3), curve(spec, 0)) == ((20_000, 80_000), (80_000, 320_000))


def test_lossy_queues_mark_before_they_drop() -> None:
    spec = spec_of("ecn: on, buffer: 32MB, queue_limit: 200KB")
    assert curve(spec) == (50_000, 200_000)


def test_auto_overrides_a_preset() -> None:
    spec = spec_of("preset: nvidia, ecn: {kmin: auto, kmax: auto}")
    assert curve(spec) == (400_000, 1_600_000)


def test_xon_follows_xoff() -> None:
    """A spec with a small xoff needs no xon."""
    pfc = spec_of("pfc: {xoff: 48KB}").given_switch("leaf1").pfc
    assert pfc is not None
    assert (pfc.xon_bytes, pfc.xon_below_xoff) == (32_000, 16_000)


@given(
    rate=st.sampled_from(["1Gbit", "25Gbit", "100Gbit", "200Gbit", "400Gbit", "800Gbit"]),
    metres=st.sampled_from([1, 30, 300, 2000]),
    megabytes=st.integers(2, 200),
    pfc=st.sampled_from(["on", "{xoff: alpha 1/8}", "{xoff: alpha 1/64}", "{xoff: 96KB}", "off"]),
    mtu=st.sampled_from([256, 1024, 4096]),
)
def test_marks_come_before_pauses(
    rate: str, metres: int, megabytes: int, pfc: str, mtu: int
) -> None:
    """The default curve marks below xoff for any port, buffer and given xoff."""
    switches = f"pfc: {pfc}, ecn: on, buffer: {megabytes}MB"
    try:
        spec = spec_of(
            switches, rate=rate, length=f"{metres}m", more=f"hosts: {{nic: {{mtu: {mtu}, {CC}}}}}"
        )
    except SpecError:
        return  # the headroom alone exceeds the buffer
    kmin, kmax = curve(spec)
    limit = spec.port_scale(port_of(spec)).limit.size_bytes
    ecn = spec.port(port_of(spec)).ecn
    assert ecn is not None
    assert 0 < kmin < kmax <= limit
    assert not late_curves(spec, port_of(spec))
    assert warnings_of(spec) == ()


def test_derived_values_have_reasons() -> None:
    spec = spec_of(f"{ON}, buffer: 64MB")
    told = {own.key: own for own in derived(spec, port_of(spec))}
    assert list(told) == [
        "switches.latency",
        "switches.switching",
        "switches.pause_response",
        "switches.pfc.xoff",
        "switches.pfc.headroom",
        "switches.ecn.kmin",
        "switches.ecn.kmax",
    ]
    assert str(told["switches.ecn.kmin"]) == (
        "switches.ecn.kmin: 400KB (100 KB for each 25 Gb/s, and the port has 100 Gb/s)"
    )
    assert all(own.value and own.reason for own in told.values())


def test_given_values_are_not_derived() -> None:
    given_all = (
        "latency: 1us, switching: cut-through, pause_response: 1us, "
        "pfc: {xoff: 96KB, xon: 64KB, headroom: 60KB}, ecn: {kmin: 9KB, kmax: 20KB}"
    )
    spec = spec_of(given_all)
    assert derived(spec, port_of(spec)) == ()


# --- latency ---


@pytest.mark.parametrize(
    ("fabric", "rate", "latency_ns"),
    [
        ("ib", "4x FDR", 170),
        ("ib", "4x EDR", 90),
        ("ib", "4x HDR", 130),
        ("ib", "4x NDR", 150),
        ("ib", "4x XDR", 150),
        ("roce", "100Gbit", 600),
        ("roce", "400Gbit", 600),
    ],
)
def test_default_latency_depends_on_fabric_and_rate(
    fabric: str, rate: str, latency_ns: int
) -> None:
    links = f"{{rate: {rate}}}"
    text = f"""
fabric: {fabric}
topology: {{kind: dumbbell, hosts_per_side: 1, links: {{host: {links}, fabric: {links}}}}}
"""
    spec = spec_from_text(text.encode(), source="test.emu.yml")
    assert spec.switch("left").latency_ps == latency_ns * 1000
    assert spec.port(spec.topology.build().port_named["left:h1"]).latency_ps == latency_ns * 1000


def test_a_given_latency_holds_on_either_fabric() -> None:
    for fabric in ("roce", "ib"):
        spec = spec_of("latency: 300ns", more=f"fabric: {fabric}")
        assert spec.switch("leaf1").latency_ps == 300_000


# --- DSCPs and warnings ---


@pytest.mark.parametrize(("preset", "dscps"), [("nvidia", (26, 48)), ("sonic", (3, 48))])
def test_a_preset_sets_the_dscps(preset: str, dscps: tuple[int, int]) -> None:
    """RDMA uses a lossless priority, and there is no warning."""
    spec = spec_of(f"preset: {preset}", more=f"hosts: {{nic: {{{CC}}}}}")
    nic = spec.host("h1").nic
    assert (nic.dscp, nic.cnp_dscp) == dscps
    pfc = spec.port(port_of(spec)).pfc
    assert pfc is not None
    assert spec.priority("h1", None) in pfc.priorities
    assert warnings_of(spec) == ()


def test_a_hosts_own_dscp_overrides_the_preset() -> None:
    nic = "hosts: {nic: {cnp_dscp: 46}, nodes: {h2: {nic: {dscp: 4}}}}"
    spec = spec_of("preset: sonic", more=nic)
    assert [spec.host(name).nic.dscp for name in ("h1", "h2")] == [3, 4]
    assert spec.host("h1").nic.cnp_dscp == 46


def test_lossy_rdma_on_a_lossless_fabric_warns() -> None:
    """SONiC maps DSCP 26, like most DSCPs, to a lossy priority."""
    (warning,) = warnings_of(spec_of("preset: sonic", more=f"hosts: {{nic: {{dscp: 26, {CC}}}}}"))
    assert warning.startswith("flow: h1 sends RDMA with DSCP 26, on priority 1, which its switch")


def test_pauses_before_marks_warn() -> None:
    switches = "pfc: {xoff: 96KB}, ecn: {kmin: 100KB}"
    (warning,) = warnings_of(spec_of(switches, more=f"hosts: {{nic: {{{CC}}}}}"))
    assert warning.startswith("spine1:leaf1 pauses its sender at 96KB (xoff 96KB), before it marks")


QUEUES = {
    "its own curve": ("kmin: 10KB, queues: {3: {kmin: 100KB}}", "switches.ecn.queues.3.kmin"),
    "what it inherits": ("kmin: 100KB, queues: {3: {pmax: 10%}}", "switches.ecn.queues.3.kmin"),
    "that of all": ("kmin: 100KB, queues: {0: {kmin: 10KB}}", "switches.ecn.kmin"),
}


@pytest.mark.parametrize("case", QUEUES)
def test_pauses_before_marks_of_a_lossless_queue_warn(case: str) -> None:
    ecn, key = QUEUES[case]
    spec = spec_of(f"pfc: {{xoff: 96KB}}, ecn: {{{ecn}}}", more=f"hosts: {{nic: {{{CC}}}}}")
    (warning,) = warnings_of(spec)
    assert f"before it marks: kmin is 100KB; lower {key}, or raise" in warning


@pytest.mark.parametrize(
    "ecn", ["kmin: 10KB, queues: {0: {kmin: 100KB}}", "kmin: 100KB, queues: {3: {kmin: 10KB}}"]
)
def test_late_marks_of_a_lossy_queue_do_not_warn(ecn: str) -> None:
    """A lossy queue pauses no sender."""
    spec = spec_of(f"pfc: {{xoff: 96KB}}, ecn: {{{ecn}}}", more=f"hosts: {{nic: {{{CC}}}}}")
    assert warnings_of(spec) == ()


def test_a_lossy_queues_curve_follows_its_drop_limit() -> None:
    """XOFF has no effect on a lossy queue. The common curve is also that of lossless queues."""
    queues = "queue_limit: 200KB, buffer: 32MB, ecn: {queues: {0: {pmax: 10%}}}"
    spec = spec_of(f"pfc: {{xoff: 96KB}}, {queues}")
    assert (curve(spec, 0), curve(spec, 3)) == ((50_000, 200_000), (24_000, 96_000))
    assert curve(spec, 1) == (24_000, 96_000)
    told = {own.key: own.reason for own in derived(spec, port_of(spec))}
    assert "queue_limit 200 KB" in told["switches.ecn.queues.0.kmin"]


def test_the_common_curve_may_be_that_of_lossy_queues_alone() -> None:
    """Every lossless queue has its own curve, so the common curve follows the drop limit."""
    spec = spec_of(
        "pfc: {xoff: 96KB}, queue_limit: 200KB, buffer: 32MB, ecn: {queues: {3: {pmax: 10%}}}"
    )
    assert (curve(spec, 0), curve(spec, 3)) == ((50_000, 200_000), (24_000, 96_000))


@pytest.mark.parametrize("switches", ["pfc: off, ecn: on", "pfc: on", "preset: none"])
def test_good_configurations_give_no_warning(switches: str) -> None:
    cc = CC if "ecn" in switches else "cc: none"
    assert warnings_of(spec_of(switches, more=f"hosts: {{nic: {{{cc}}}}}")) == ()


IDLE = {
    "no port marks": ("pfc: on", "cc: dcqcn", "marks packets of priority 3; set switches.ecn=on"),
    "no port on the way marks": (
        "roles: {spine: {ecn: on}}",
        "cc: dcqcn-nvidia",
        "marks packets of priority 3; set switches.ecn=on",
    ),
    "the queue has no curve": (
        "ecn: {queues: {3: off}}",
        "cc: dctcp",
        "marks packets of priority 3; set switches.ecn=on",
    ),
    "packets are not ECN-capable": ("ecn: on", "cc: dcqcn, ecn: off", "set hosts.nic.ecn=on"),
    "the priority is masked out": (
        "ecn: on",
        "cc: dcqcn-nvidia, roce_cc_ecn: {roce_cc_prio_mask: 1}",
        "roce_cc_prio_mask leaves out priority 3",
    ),
}


@pytest.mark.parametrize("case", IDLE)
def test_a_control_that_no_mark_reaches_warns(case: str) -> None:
    switches, nic, reason = IDLE[case]
    (warning,) = warnings_of(spec_of(switches, more=f"hosts: {{nic: {{{nic}}}}}"))
    assert warning.startswith("h1 uses cc: dc")
    assert "never slows a flow here" in warning
    assert reason in warning


def test_a_congestion_control_table_without_fecn_warns() -> None:
    more = "fabric: ib\nhosts: {nic: {cc: cct}}"
    (warning,) = warnings_of(spec_of("", more=more))
    assert warning.startswith("h1 uses cc: cct")
    assert "set switches.fecn=on" in warning
    assert warnings_of(spec_of("fecn: on", more=more)) == ()


@pytest.mark.parametrize("cc", ["none", "swift", "dcqcn-nvidia"])
def test_a_control_that_can_act_does_not_warn(cc: str) -> None:
    switches = "ecn: on" if cc == "dcqcn-nvidia" else ""
    assert warnings_of(spec_of(switches, more=f"hosts: {{nic: {{cc: {cc}}}}}")) == ()


UNHEEDED = {
    "thresholds of one's own": ("ecn: on", "", "(switches.ecn)", "set hosts.nic.cc=dcqcn-nvidia"),
    "a preset's": ("preset: nvidia", "", "(switches.ecn)", "or switches.ecn=off"),
    "one port on the way": ("nodes: {leaf1: {ports: {h2: {ecn: on}}}}", "", "leaf1:h2 marks", ""),
    "InfiniBand": ("fecn: on", "fabric: ib", "(switches.fecn)", "set hosts.nic.cc=cct"),
}


@pytest.mark.parametrize("case", UNHEEDED)
def test_marks_without_a_reacting_sender_warn(case: str) -> None:
    switches, more, where, cure = UNHEEDED[case]
    (warning,) = warnings_of(spec_of(switches, more=more))
    assert warning.startswith("flow: leaf1:h2 marks packets")
    assert "no sender reacts (h1 and all other senders of such packets have cc: none" in warning
    assert where in warning
    assert cure in warning


HEEDED = {
    "a sender heeds them": ("ecn: on", f"nodes: {{h1: {{nic: {{{CC}}}}}}}"),
    "a sender goes by delay": ("ecn: on", "nic: {cc: swift}"),
    "packets cannot be marked": ("ecn: on", "nic: {ecn: off}"),
    "the queue has no curve": ("ecn: {queues: {3: off}}", "nic: {cc: none}"),
    "no packet comes by": ("roles: {spine: {ecn: on}}", "nic: {cc: none}"),
}


@pytest.mark.parametrize("case", HEEDED)
def test_marks_with_a_reacting_sender_do_not_warn(case: str) -> None:
    switches, hosts = HEEDED[case]
    assert warnings_of(spec_of(switches, more=f"hosts: {{{hosts}}}")) == ()


@pytest.mark.parametrize(("gbit", "rai", "rhai"), [(100, 100, 500), (400, 400, 2000)])
def test_steps_for_40_gbit_on_faster_links_warn(gbit: int, rai: int, rhai: int) -> None:
    """There is no warning with R_AI and R_HAI in proportion, or if the
    spec gives the paper's R_AI."""
    rate, more = f"{gbit}Gbit", "hosts: {nic: {cc: dcqcn}}"
    (warning,) = warnings_of(spec_of("ecn: on, buffer: 64MB", rate=rate, more=more))
    assert f"{gbit / 40:g} times smaller relative to the link" in warning
    assert f"hosts.nic.dcqcn.rai={rai}Mbit and hosts.nic.dcqcn.rhai=" in warning
    for steps in (f"{{rai: {rai}Mbit, rhai: {rhai}Mbit}}", "{rai: 40Mbit}"):
        given = f"hosts: {{nic: {{cc: dcqcn, dcqcn: {steps}}}}}"
        assert warnings_of(spec_of("ecn: on, buffer: 64MB", rate=rate, more=given)) == ()


@pytest.mark.parametrize(("rate", "cc"), [("40Gbit", "dcqcn"), ("400Gbit", "dcqcn-nvidia")])
def test_steps_that_fit_the_link_do_not_warn(rate: str, cc: str) -> None:
    spec = spec_of("ecn: on, buffer: 64MB", rate=rate, more=f"hosts: {{nic: {{cc: {cc}}}}}")
    assert warnings_of(spec) == ()


MANY = "traffic: [{name: many, pattern: incast, from: h2-h4, to: h1, size: 1MB}]"


def many(more: str, switches: str = "") -> Spec:
    """A spec of three senders whose packets a switch may drop."""
    text = f"""
topology: {{kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 4}}
switches: {{{switches}}}
{MANY}
{more}
"""
    return spec_from_text(text.encode(), source="test.emu.yml")


def test_a_timer_longer_than_a_lossy_run_warns() -> None:
    (warning,) = warnings_of(many("time_limit: 20ms"))
    assert "hosts.nic.timeout: 14), longer than the run (time_limit: 20ms)" in warning
    assert "set hosts.nic.timeout=10, or raise time_limit" in warning
    assert warnings_of(many("time_limit: 20ms\nhosts: {nic: {timeout: 10}}")) == ()
    assert warnings_of(many("time_limit: 20ms", "pfc: on")) == ()
    assert warnings_of(many("time_limit: 100ms")) == ()


PAIRS = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2, links: {LINKS}}
switches: {SWITCHES}
hosts: {HOSTS}
traffic: [TRAFFIC]
time_limit: 20ms
"""
ONE, TWO = (
    f"{{name: {name}, pattern: pair, from: {source}, to: h3, size: 1MB}}"
    for name, source in (("one", "h1"), ("two", "h2"))
)


def pairs(traffic: str, switches: str = "", hosts: str = "", links: str = "") -> tuple[str, ...]:
    text = PAIRS.replace("TRAFFIC", traffic).replace("SWITCHES", switches)
    text = text.replace("HOSTS", hosts).replace("LINKS", links)
    return warnings_of(spec_from_text(text.encode(), source="test.emu.yml"))


def test_entries_that_share_a_port_may_lose_packets() -> None:
    """One entry alone, or entries with separate receivers, do not warn."""
    assert pairs(ONE) == ()
    assert pairs(ONE, links="fabric: {rate: 400Gbit}") == ()
    (warning,) = pairs(f"{ONE}, {TWO}")
    assert warning.startswith("one: leaf1:spine1 may drop packets of h1, and its retransmission")
    apart = TWO.replace("to: h3", "to: h4")
    assert pairs(f"{ONE}, {apart}", links="fabric: {rate: 400Gbit}") == ()
    (last,) = pairs(f"{ONE}, {TWO}", links="fabric: {rate: 400Gbit}")
    assert last.startswith("one: leaf2:h3 may drop")


def test_one_sender_before_a_slower_cable_may_lose_packets() -> None:
    (warning,) = pairs(ONE, links="fabric: {rate: 10Gbit}")
    assert warning.startswith("one: leaf1:spine1 may drop packets of h1")


def test_pfc_is_checked_at_every_switch_of_the_path() -> None:
    """A switch may drop packets that it receives on a port without PFC."""
    both, fast = f"{ONE}, {TWO}", "fabric: {rate: 400Gbit}"
    assert pairs(both, "pfc: on") == ()
    (warning,) = pairs(both, "pfc: on, roles: {leaf: {ports: {spine1: {pfc: off}}}}", links=fast)
    assert warning.startswith("one: leaf2:h3 may drop packets of h1")
    assert pairs(both, "pfc: on, roles: {spine: {pfc: off}}", links=fast) == ()


def test_the_timer_of_a_read_is_the_requesters() -> None:
    """The responder sends the data."""
    read = "{name: read, pattern: outcast, from: h3, to: h1-h2, op: read, size: 1MB}"
    (warning,) = pairs(read)
    assert "may drop packets of h1, and h3's retransmission timer" in warning


def test_a_hosts_own_timer_is_named_by_its_key() -> None:
    own = "nic: {timeout: 8}, nodes: {h2: {nic: {timeout: 16}}}"
    (warning,) = pairs(f"{ONE}, {TWO}", hosts=own)
    assert warning.startswith("two: leaf1:spine1 may drop packets of h2")
    assert "(hosts.nodes.h2.nic.timeout: 16)" in warning
    assert "set hosts.nodes.h2.nic.timeout=10, or raise time_limit" in warning


def test_the_default_timeout_is_that_of_real_nics() -> None:
    """4.096 us * 2^14 = 67 ms, so a queue pair survives a pause of some milliseconds."""
    assert spec_of("pfc: on").host("h1").nic.timeout == 14


@pytest.mark.parametrize("kind", ["spray", "adaptive"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_spraying_with_go_back_n_warns(kind: str, fabric: str) -> None:
    """There is no warning with a single path, or if the sender's NIC tolerates reordering."""
    text = f"""
fabric: {fabric}
topology: {{kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 1}}
switches: {{routing: {{kind: {kind}}}}}
traffic: [{{name: flow, pattern: pair, from: h1, to: h2, size: 1MB}}]
"""
    (warning,) = warnings_of(spec_from_text(text.encode(), source="test.emu.yml"))
    assert warning.startswith(
        f"flow: leaf1 sends the packets of a flow over several paths ({kind} "
    )
    for cure in ("hosts.nic.recovery=selective-repeat", "topology.spines=1"):
        spec = spec_from_text(text.encode(), source="test.emu.yml", settings=(cure,))
        assert warnings_of(spec) == ()
