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
        "queue pairs that gave up",
        detectors.gave_up,
        "local_ack_timeout_err grows at the sender, then req_cqe_error, and req_cqe_flush_error "
        "for all that was posted behind; its rate in the plot ends, and a capture has the same "
        "PSNs again, one time-out apart",
        "A failed queue pair does not come back by itself: its program must make another. A longer "
        "time-out outlives queues, pauses and outages; 14 (67 ms) is usual",
        fabrics=any_fabric,
    ),
    Pathology(
        "deadlock",
        detectors.credit_deadlock,
        "PortXmitWait of the circle's ports grows all the time while their PortXmitData stands "
        "still, their lines in the plot of waiting never end, and a capture there has credit "
        "updates and nothing else",
        "Routes without a circle of credit do not close one: up and down a tree (updn), or on "
        "several lanes (dfsssp, lash)",
        stops_everything=True,
        fabrics=credits,
    ),
    Pathology(
        "deadlock",
        detectors.deadlock,
        "Ports of a circle hold each other paused: their tx_bytes stand still, their lines in the "
        "plot of waiting never end, and a capture there has pause frames and nothing else",
        "The watchdog drops what one of them holds, and the circle opens; routes without a circle "
        "(up and down a Clos) do not close one",
        stops_everything=True,
    ),
    Pathology(
        "pause storm",
        detectors.pause_storm,
        "rx_prioN_pause_duration of the host's port grows without a transition to XON, queues "
        "behind it stand, rates of strangers fall to nothing hop by hop, and a capture of its "
        "cable has the same pause frame again and again",
        "The watchdog takes the port out of PFC, so that its neighbours are let go",
        stops_everything=True,
    ),
    Pathology(
        "pause storm that the watchdog ended",
        detectors.guarded_storm,
        "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED grows at the host's port, and "
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS counts what the watchdog dropped there; rates of "
        "strangers come back after the detection time",
        "The fabric is safe, what is for that host is not: its NIC, driver or PCIe link must be "
        "mended",
        stops_everything=True,
    ),
    Pathology(
        "slow receiver",
        detectors.slow_receiver,
        "A host pauses its leaf in short turns (many rx_prioN_pause_transition), the queue to it "
        "is never empty though its cable is not full, and a capture there alternates XOFF and XON",
        "The host itself must become faster; congestion control at least makes its senders as "
        "slow as it is, so that nobody else waits behind them",
        stops_everything=True,
    ),
    Pathology(
        "go-back-0 livelock",
        detectors.livelock,
        "tx_wire_bytes grow at the rate of the link while the plot of rates stays at nothing; in "
        "a capture PSNs go back to the first of the message after every NAK",
        "A NIC that goes back to what was lost, and not to where the message began, gets through",
    ),
    Pathology(
        "reordering taken for loss",
        detectors.reordering,
        "out_of_sequence and duplicate_request grow at the receivers, packet_seq_err and "
        "retransmitted_packets at the senders, and no port drops; a capture has NAKs for PSNs that "
        "come a moment later",
        "A NIC that keeps what comes out of order, and waits before it asks for what is missing, "
        "sends nothing twice; or routing that keeps a flow on one path",
        stops_everything=True,
        fabrics=any_fabric,
    ),
    Pathology(
        "priority map differs at a hop",
        detectors.wrong_map,
        "What one switch sends by a priority, the next receives by another "
        "(tx_prioN_packets against rx_prioN_packets of one cable), so it is paused or dropped as "
        "what it is not; a capture shows the same DSCP on both sides",
        "All hops must map DSCPs alike",
    ),
    Pathology(
        "priority that a switch does not see",
        detectors.unseen_priority,
        "A NIC sends by a lossless priority and its switch receives by another (tx_prioN_packets "
        "of the host against rx_prioN_packets of its switch), so pauses stop what does not wait; a "
        "capture shows the field that the switch trusts: DSCP, PCP, or no VLAN tag",
        "What a NIC calls a priority its switch must call the same: where it trusts PCP, by a tag",
    ),
    Pathology(
        "headroom too small",
        detectors.small_headroom,
        "rx_prioN_buf_discard of a lossless priority, after a pause was sent; the plot of buffers "
        "is cut off at the top, and a capture has a gap in the PSNs and a NAK",
        "Headroom must hold what is on its way when the pause is sent",
    ),
    Pathology(
        "loss by a fault",
        detectors.lost_by_fault,
        "link_downed and link_down_discard of the ports of a lost link, rx_crc_errors behind a "
        "damaged cable, retransmitted_packets and local_ack_timeout_err at the senders; a capture "
        "behind the fault has a gap in the PSNs, and the same PSNs again one time-out later",
        "The cable, plug or switch must be mended; a second way and a timer that fits the outage "
        "keep short what it costs",
        fabrics=any_fabric,
    ),
    Pathology(
        "loss",
        detectors.loss,
        "tx_prioN_discards at the crowded port, retransmitted_packets and packet_seq_err at the "
        "senders; the queue in the plot has a flat top, and a capture has NAKs",
        "PFC on that priority stops senders instead",
    ),
    Pathology(
        "retransmission timer that fires too early",
        detectors.early_timers,
        "local_ack_timeout_err and retransmitted_packets grow at senders, and duplicate_request at "
        "receivers, though no port drops what they send; a capture has the same PSNs again, and no "
        "NAK before them",
        "A timer must outlast queues and pauses; 14 (67 ms) is usual",
        fabrics=any_fabric,
    ),
    Pathology(
        "Kmin above XOFF",
        detectors.late_marks,
        "Pause frames and not one CE of their priority: tx_prioN_pause grows, tx_prioN_ecn_marked "
        "stays 0; in the plot the queue turns round below Kmin, and in a capture no packet of that "
        "priority has CE",
        "Marks must come before pauses, or congestion control never hears of congestion",
    ),
    Pathology(
        "marks that nobody heeds",
        detectors.unheeded_marks,
        "tx_prioN_ecn_marked and np_ecn_marked_roce_packets grow, np_cnp_sent stays 0 and rates in "
        "the plot do not fall; a capture has CE and no CNP",
        "NICs with DCQCN answer marks by CNPs, and slow down",
    ),
    Pathology(
        "CNPs that are ignored",
        detectors.ignored_cnps,
        "rp_cnp_ignored grows at a sender, and its rate in the plot stays at that of its link "
        "while others give way; a capture of its cable has CNPs, and data no slower behind them",
        "Every NIC that sends into a shared queue needs its reaction point",
    ),
    Pathology(
        "rate that comes back too slowly",
        held_rates.held_by_control,
        "rp_cnp_handled (or rp_becn_received) stands still, queues in the plot are empty, cables "
        "are idle, and a rate climbs in small steps; a capture has no CNP any more, and gaps "
        "between packets",
        "Rates must come back as fast as the links are: the steps of DCQCN's paper are small, for "
        "links of 40 Gbit/s and less, and a long CCTI timer is for slow links",
        fabrics=any_fabric,
    ),
    Pathology(
        "victim of head-of-line blocking",
        detectors.victim,
        "A host is paused (rx_prioN_pause_duration) though the receiver's cable has room; its rate "
        "in the plot follows a congestion that it has no part in",
        "Congestion control slows those down that fill the queue, and the pauses end",
    ),
    Pathology(
        "victims of congestion that spreads by credits",
        credit_victims,
        "PortXmitWait of hosts and switches grows though the cables to their receivers have room; "
        "rates in the plot follow a port that is full and has no part in their paths",
        "On a service level with a virtual lane of its own, other traffic does not wait behind "
        "what goes to that port; a congestion control table slows down those that fill it, if "
        "they are marked more often than its index falls, and for long enough",
        fabrics=credits,
    ),
    Pathology(
        "unfair shares",
        detectors.unfairness,
        "PFC pauses ports, not flows: who has a port for itself gets most. Rates in the plot go in "
        "steps by the number of flows behind a port, with pauses and without CNPs",
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
            return ". No setting is known that would do more about it in this spec"
        return (
            before + ": " + " ".join(f"--set {shlex.quote(setting)}" for setting in self.settings)
        )


def diagnoses(run: RunFacts) -> list[Diagnosis]:
    """The diagnoses of a run, the gravest first; empty for an inconclusive run."""
    return run.once(_diagnoses)


def _diagnoses(run: RunFacts) -> list[Diagnosis]:
    return list(_found(run)) if run.conclusive else []


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
