"""Diagnoses what is wrong with a run from its own figures, and names settings that cure it.

    signature ──▶ Diagnosis(evidence of this run, settings that cure it)
                  Pathology(what it is, how it looks in counters, plot and capture)

The table below has an entry for each pathology. Settings are given as `--set` takes them. With
them, the detector does not find the pathology in this run's spec any more.
Sources: Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM'16; Zhu et al.,
Congestion Control for Large-Scale RDMA Deployments, SIGCOMM'15.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from emu.fabric_kind import FabricKind
from emu.report import detectors, fixes, held_rates
from emu.report.credit_victims import credit_victims
from emu.report.detectors import Finding, Signature
from emu.report.run_view import RunFacts


def any_fabric(_kind: FabricKind) -> bool:
    return True


def ethernet(kind: FabricKind) -> bool:
    return kind.is_ethernet


def credits(kind: FabricKind) -> bool:
    return kind.uses_credits


@dataclass(frozen=True)
class Pathology:
    """`signature` detects it. `looks`: its signs in counters, plot and capture. `cure`: why the
    settings help."""

    name: str
    signature: Signature
    looks: str
    cure: str
    stops_everything: bool = False
    """Whether later pathologies of the table would only be consequences of it."""
    fabrics: Callable[[FabricKind], bool] = ethernet
    """The kinds of fabric that may have it."""


PATHOLOGIES = (
    Pathology(
        "failed queue pairs",
        detectors.gave_up,
        "local_ack_timeout_err grows at the sender, then req_cqe_error, and req_cqe_flush_error "
        "for all requests posted later. The rate in the plot drops to zero, and a capture shows "
        "the same PSNs again, one timeout apart",
        "A failed queue pair does not recover by itself: its program must create another. A "
        "longer timeout outlasts queues, pauses and outages; 14 (67 ms) is usual",
        fabrics=any_fabric,
    ),
    Pathology(
        "deadlock",
        detectors.credit_deadlock,
        "PortXmitWait of the ports in the credit loop grows all the time while their PortXmitData "
        "stands still. Their lines in the plot of waiting never end, and a capture there shows "
        "only credit updates",
        "Routes without a credit loop cannot deadlock: up and down a tree (updn), or on several "
        "lanes (dfsssp, lash)",
        stops_everything=True,
        fabrics=credits,
    ),
    Pathology(
        "deadlock",
        detectors.deadlock,
        "The ports of a cyclic buffer dependency hold each other paused: their tx_bytes stand "
        "still, their lines in the plot of waiting never end, and a capture there shows only "
        "pause frames",
        "Routes without a cyclic buffer dependency (up and down a Clos) cannot deadlock. A "
        "watchdog breaks the cycle, because it drops the packets that one of the ports holds",
        stops_everything=True,
    ),
    Pathology(
        "pause storm",
        detectors.pause_storm,
        "rx_prioN_pause_duration of the host's port grows without a transition to XON, queues "
        "behind it do not drain, rates of other flows drop to zero hop by hop, and a capture of "
        "its cable shows the same pause frame again and again",
        "The watchdog takes the port out of PFC, which releases its neighbours",
        stops_everything=True,
    ),
    Pathology(
        "pause storm stopped by the watchdog",
        detectors.guarded_storm,
        "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED grows at the host's port, and "
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS counts the packets that the watchdog dropped "
        "there. Rates of other flows recover after the detection time",
        "The fabric is protected, but packets to that host are dropped: repair its NIC, driver or "
        "PCIe link",
        stops_everything=True,
    ),
    Pathology(
        "slow receiver",
        detectors.slow_receiver,
        "A host pauses its leaf in short turns (many rx_prioN_pause_transition), the queue to it "
        "is never empty although its cable is not full, and a capture there alternates XOFF and "
        "XON",
        "The host itself must become faster. Congestion control at least slows its senders down "
        "to its rate, so that other flows do not wait behind them",
        stops_everything=True,
    ),
    Pathology(
        "go-back-0 livelock",
        detectors.livelock,
        "tx_wire_bytes grow at the rate of the link while rates in the plot stay at zero. In a "
        "capture, PSNs go back to the first PSN of the message after every NAK",
        "Go-back-N resumes at the lost packet and not at the start of the message, so messages "
        "get through",
    ),
    Pathology(
        "reordering taken for loss",
        detectors.reordering,
        "out_of_sequence and duplicate_request grow at the receivers, packet_seq_err and "
        "retransmitted_packets at the senders, and no port drops. A capture shows NAKs for PSNs "
        "that arrive a moment later",
        "Routing that keeps a flow on one path avoids it. So does a NIC that accepts packets out "
        "of order, and waits before it requests missing ones",
        stops_everything=True,
        fabrics=any_fabric,
    ),
    Pathology(
        "priority map differs at a hop",
        detectors.wrong_map,
        "A switch sends packets on one priority, and the next switch receives them on another "
        "(tx_prioN_packets against rx_prioN_packets of one cable), so that pauses and buffers of "
        "the wrong priority apply. A capture shows the same DSCP on both sides",
        "All hops must map DSCPs to the same priorities",
    ),
    Pathology(
        "priority mismatch between NIC and switch",
        detectors.unseen_priority,
        "A NIC sends on a lossless priority, and its switch receives on another (tx_prioN_packets "
        "of the host against rx_prioN_packets of its switch), so that pauses do not stop these "
        "packets. A capture shows the field that the switch trusts: DSCP, PCP, or no VLAN tag",
        "NIC and switch must use the same priority for a packet. Where the switch trusts PCP, "
        "packets need a VLAN tag",
    ),
    Pathology(
        "headroom too small",
        detectors.small_headroom,
        "rx_prioN_buf_discard of a lossless priority grows after a pause was sent. The plot of "
        "buffers is cut off at the top, and a capture shows a gap in the PSNs and a NAK",
        "Headroom must hold all packets that are in flight when the pause is sent",
    ),
    Pathology(
        "loss by a fault",
        detectors.lost_by_fault,
        "link_downed and link_down_discard grow at the ports of a lost link, rx_crc_errors behind "
        "a damaged cable, retransmitted_packets and local_ack_timeout_err at the senders. A "
        "capture behind the fault shows a gap in the PSNs, and the same PSNs again one timeout "
        "later",
        "Repair the cable, plug or switch. A second path, and a timer that fits the outage, "
        "reduce the damage",
        fabrics=any_fabric,
    ),
    Pathology(
        "loss",
        detectors.loss,
        "tx_prioN_discards grow at the congested port, retransmitted_packets and packet_seq_err "
        "at the senders. The queue in the plot has a flat top, and a capture shows NAKs",
        "PFC on that priority pauses senders instead of dropping packets",
    ),
    Pathology(
        "premature retransmission timeout",
        detectors.early_timers,
        "local_ack_timeout_err and retransmitted_packets grow at senders, and duplicate_request "
        "at receivers, although no port drops their packets. A capture shows the same PSNs again, "
        "and no NAK before them",
        "A timer must outlast queues and pauses; 14 (67 ms) is usual",
        fabrics=any_fabric,
    ),
    Pathology(
        "Kmin above XOFF",
        detectors.late_marks,
        "There are pause frames, but no CE marks of their priority: tx_prioN_pause grows, "
        "tx_prioN_ecn_marked stays 0. In the plot, the queue stops growing below Kmin, and in a "
        "capture no packet of that priority has CE",
        "Marks must come before pauses, so that congestion control can act first",
    ),
    Pathology(
        "unanswered ECN marks",
        detectors.unheeded_marks,
        "tx_prioN_ecn_marked and np_ecn_marked_roce_packets grow, np_cnp_sent stays 0, and rates "
        "in the plot do not fall. A capture shows CE and no CNP",
        "NICs with DCQCN answer marks with CNPs, and senders slow down",
    ),
    Pathology(
        "ignored CNPs",
        detectors.ignored_cnps,
        "rp_cnp_ignored grows at a sender, and its rate in the plot stays at line rate while "
        "other senders slow down. A capture of its cable shows CNPs, and data packets at the same "
        "rate after them",
        "Every NIC that sends into a shared queue needs its reaction point",
    ),
    Pathology(
        "slow rate recovery",
        held_rates.held_by_control,
        "rp_cnp_handled (or rp_becn_received) stands still, queues in the plot are empty, cables "
        "are idle, and a rate climbs in small steps. A capture shows no more CNPs, and gaps "
        "between packets",
        "Rates must recover in proportion to the speed of the links: the steps in DCQCN's paper "
        "are for links of 40 Gbit/s and less, and a long CCTI timer is for slow links",
        fabrics=any_fabric,
    ),
    Pathology(
        "victim of head-of-line blocking",
        detectors.victim,
        "A host is paused (rx_prioN_pause_duration) although the receiver's cable has room. Its "
        "rate in the plot follows a congestion that it does not cause",
        "Congestion control slows down the senders that fill the queue, and the pauses end",
    ),
    Pathology(
        "victims of congestion spreading",
        credit_victims,
        "PortXmitWait of hosts and switches grows although the cables to their receivers have "
        "room. Rates in the plot follow a full port that is not on their paths",
        "On a service level with a virtual lane of its own, other traffic does not wait behind "
        "packets to that port. A congestion control table slows down the senders to that port, if "
        "they are marked more often than the table index falls, and for long enough",
        fabrics=credits,
    ),
    Pathology(
        "unfair shares",
        detectors.unfairness,
        "PFC pauses ports, not flows: a flow that has a port for itself gets most. Rates in the "
        "plot go in steps by the number of flows behind a port, with pauses and without CNPs",
        "Congestion control acts on flows",
    ),
)


@dataclass(frozen=True)
class Diagnosis:
    """One pathology found in one run."""

    pathology: Pathology
    found: Finding

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings that cure it, as `--set` takes them; empty when none is known."""
        return self.found.settings

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self) -> str:
        """The diagnosis as a paragraph: evidence, signs and cure."""
        what = self.pathology
        name = what.name[0].upper() + what.name[1:]
        return f"{name}: {self.found.evidence}. {what.looks}. {what.cure}{self._to_set()}"

    def in_short(self) -> str:
        """The evidence and the settings, in a sentence or two."""
        name = self.pathology.name
        return f"{name[0].upper()}{name[1:]}: {self.found.evidence}{self._to_set('. Cure')}"

    def _to_set(self, before: str = "") -> str:
        if not self.settings:
            return ". No settings are proposed for this spec"
        return (
            before + ": " + " ".join(f"--set {shlex.quote(setting)}" for setting in self.settings)
        )


def diagnoses(run: RunFacts) -> list[Diagnosis]:
    """The diagnoses of a run, the gravest first; empty for an inconclusive run, and for a model
    without packets."""
    return run.once(_diagnoses)


def _diagnoses(run: RunFacts) -> list[Diagnosis]:
    return list(_found(run)) if run.conclusive and run.has_packets else []


def _found(run: RunFacts) -> Iterator[Diagnosis]:
    """The diagnoses with the settings that have an effect. Equal settings are tried once."""
    effective: dict[fixes.Settings, fixes.Settings] = {}
    for pathology, found in pathologies(lambda pathology: run):
        wanted = found.settings
        if wanted not in effective:
            effective[wanted] = fixes.effective(run.spec, wanted)
        yield Diagnosis(pathology, replace(found, settings=effective[wanted]))


def pathologies(
    facts_for: Callable[[Pathology], RunFacts | None],
) -> Iterator[tuple[Pathology, Finding]]:
    """The pathologies that are found, with their findings. `facts_for` gives the run in which to
    look for a pathology, or None to skip it. After a finding by an injected misconfiguration, only
    other such findings count, because the rest may be consequences."""
    by_fault = False
    for pathology in PATHOLOGIES:
        run = facts_for(pathology)
        if run is None or not pathology.fabrics(run.recording.fabric_kind):
            continue
        found = pathology.signature(run)
        if found is not None and (found.by_fault or not by_fault):
            by_fault |= found.by_fault
            yield pathology, found
            if pathology.stops_everything and not found.is_local:
                return
