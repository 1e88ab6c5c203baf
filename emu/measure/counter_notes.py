"""What each counter of a summary counts: its meaning, unit and source, in one place.

A name with N stands for eight priorities or fifteen virtual lanes: rx_prioN_pause is the note of
rx_prio3_pause. `emu explain`, `emu counters --explain` and docs/reference read this table; a
test holds that no summary has a counter without a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from emu.spec import references


@dataclass(frozen=True)
class CounterNote:
    name: str
    where: str
    """A key of `PLACES`."""
    meaning: str
    unit: str
    source: str

    def meaning_of(self, name: str) -> str:
        """With the number in a counter's name instead of N."""
        number = pattern_of(self.name).fullmatch(name)
        if number is None or not number.groups():
            return self.meaning
        return _NUMBERED.sub(number[1], self.meaning)


PLACES = {
    "ethernet": "ports of a RoCE fabric, and the NICs' ends of their cables",
    "infiniband": "ports of an InfiniBand fabric, the NICs' ends of their cables, and `scale_up`",
    "port": "ports of both fabrics, and the NICs' ends of their cables",
    "nic": "RDMA NICs, in `hosts`",
    "total": "the whole fabric, in `totals`",
}
"""Who has a counter."""

OURS = "this emulator; no other tool has this counter"


def _notes(where: str, source: str, *rows: tuple[str, str, str]) -> tuple[CounterNote, ...]:
    return tuple(CounterNote(name, where, meaning, unit, source) for name, unit, meaning in rows)


_ETHERNET = (
    *_notes(
        "ethernet",
        references.ETHTOOL,
        ("rx_prioN_packets", "packets", "Packets of priority N that came in."),
        (
            "rx_prioN_bytes",
            "bytes",
            "Bytes of these packets as a capture has them: without preamble, FCS and gap.",
        ),
        ("tx_prioN_packets", "packets", "Packets of priority N that were sent."),
        (
            "tx_prioN_bytes",
            "bytes",
            "Bytes of these packets as a capture has them: without preamble, FCS and gap.",
        ),
        (
            "rx_prioN_pause",
            "frames",
            "PFC frames that came in with priority N enabled. A pause (XOFF) and its end (XON) "
            "count as one each.",
        ),
        (
            "tx_prioN_pause",
            "frames",
            "PFC frames that this port sent with priority N enabled. A pause (XOFF), its refresh "
            "and its end (XON) count as one each.",
        ),
        (
            "rx_prioN_pause_duration",
            "us of emulated time",
            "How long priority N of this port was paused: it was told not to send. On a fabric "
            "without congestion this is 0; near the length of the run it means a storm or a "
            "deadlock.",
        ),
        (
            "tx_prioN_pause_duration",
            "us of emulated time",
            "How long this port told the far end of its cable not to send priority N.",
        ),
        (
            "rx_prioN_pause_transition",
            "transitions",
            "How often priority N went from XOFF to XON, that is how many pauses ended.",
        ),
        (
            "rx_prioN_buf_discard",
            "packets",
            "Packets of priority N that were dropped on arrival, because the ingress buffer had no "
            "room. On a lossless priority: the headroom was too small, or the sender did not obey "
            "pauses.",
        ),
        (
            "tx_prioN_discards",
            "packets",
            "Packets of priority N that were dropped because their egress queue was over its "
            "threshold (alpha or queue_limit). It happens on lossy priorities only.",
        ),
        (
            "rx_undersize_pkts",
            "frames",
            "Frames that were dropped because they are shorter than their headers.",
        ),
        (
            "rx_oversize_pkts",
            "frames",
            "Frames that were dropped because they are longer than any frame of the fabric: a host "
            "sends what its MTU does not allow.",
        ),
        ("rx_global_pause", "frames", "Pause frames of 802.3x that came in: they stop all."),
        ("tx_global_pause", "frames", "Pause frames of 802.3x that this port sent."),
        (
            "rx_global_pause_duration",
            "us of emulated time",
            "How long 802.3x pauses kept this port from sending.",
        ),
        (
            "tx_global_pause_duration",
            "us of emulated time",
            "How long this port told the far end of its cable not to send, by 802.3x pauses.",
        ),
        ("rx_global_pause_transition", "transitions", "How many 802.3x pauses ended."),
    ),
    *_notes(
        "ethernet",
        OURS,
        (
            "tx_prioN_ecn_marked",
            "packets",
            "Packets of priority N in which this port's ECN marking set CE.",
        ),
        (
            "rx_prioN_headroom_peak_bytes",
            "bytes",
            "The most that this port ever held in the headroom of priority N. Near the size of the "
            "headroom, the next longer cable would lose packets.",
        ),
        (
            "rx_pause_frames",
            "frames",
            "All pause frames that came in, PFC and 802.3x, whatever priorities they name.",
        ),
        ("tx_pause_frames", "frames", "All pause frames that this port sent, PFC and 802.3x."),
        (
            "rx_mac_control_unknown",
            "frames",
            "MAC control frames that are not valid pause frames. They are ignored.",
        ),
        ("rx_crc_errors", "frames", "Frames that a cable damaged: their FCS is wrong."),
        ("no_route", "packets", "Packets dropped because the switch had no route to their host."),
        ("ttl_expired", "packets", "Packets dropped because their TTL was used up: a loop."),
        (
            "prioN_dropped_packets",
            "packets",
            "Packets of priority N that ended at this port, whatever the reason: switch, watchdog, "
            "lost link, a fault on its cable, or a NIC that had no room or found them damaged or "
            "malformed. What a NIC refuses though it is right (rx_other, rx_unknown_qp, ...) is "
            "not among them, nor is what the machine lost (transit_lost).",
        ),
        ("not_ip", "packets", "Frames dropped because they carry no IPv4, so no route fits."),
        (
            "transit_lost",
            "packets",
            "Packets that Open vSwitch was given and did not give back. The run is inconclusive.",
        ),
        (
            "transit_overflow",
            "packets",
            "Packets that could not be given to Open vSwitch, as too many were there already. The "
            "run is inconclusive.",
        ),
        (
            "transit_unknown",
            "packets",
            "Packets that came back from Open vSwitch and had never been given to it.",
        ),
        ("link_downed", "times", "How often the link of this port was lost."),
        ("link_down_discard", "packets", "Packets that were lost with a link."),
    ),
    *_notes(
        "ethernet",
        references.SAI,
        ("SAI_PORT_STAT_PFC_N_RX_PKTS", "frames", "rx_prioN_pause by the name that SAI has."),
        ("SAI_PORT_STAT_PFC_N_TX_PKTS", "frames", "tx_prioN_pause by the name that SAI has."),
        (
            "SAI_PORT_STAT_PFC_N_RX_PAUSE_DURATION_US",
            "us of emulated time",
            "rx_prioN_pause_duration by the name that SAI has.",
        ),
        (
            "SAI_PORT_STAT_PFC_N_ON2OFF_RX_PKTS",
            "transitions",
            "rx_prioN_pause_transition by the name that SAI has.",
        ),
    ),
    *_notes(
        "ethernet",
        references.SONIC_PFCWD,
        (
            "prioN_PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED",
            "storms",
            "How often the PFC watchdog found a storm on priority N.",
        ),
        (
            "prioN_PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED",
            "storms",
            "How many of these storms ended, so that PFC works again.",
        ),
        ("prioN_PFC_WD_STATUS", "0 or 1", "1: stormed. 0: operational."),
        (
            "prioN_PFC_WD_QUEUE_STATS_TX_PACKETS",
            "packets",
            "Packets of priority N that left by this port during storms (action forward).",
        ),
        (
            "prioN_PFC_WD_QUEUE_STATS_RX_PACKETS",
            "packets",
            "Packets of priority N that came in by this port during storms.",
        ),
        (
            "prioN_PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS",
            "packets",
            "Packets of priority N that the watchdog dropped at egress (action drop).",
        ),
        (
            "prioN_PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS",
            "packets",
            "Packets of priority N that the watchdog dropped on arrival (action drop).",
        ),
        *(
            (
                f"prioN_PFC_WD_QUEUE_STATS_{what}_LAST",
                "packets",
                f"The part of prioN_PFC_WD_QUEUE_STATS_{what} that belongs to the latest storm, "
                "which may still last.",
            )
            for what in ("TX_PACKETS", "RX_PACKETS", "TX_DROPPED_PACKETS", "RX_DROPPED_PACKETS")
        ),
    ),
)

_INFINIBAND = (
    *_notes(
        "infiniband",
        references.IBTA_PMA,
        (
            "PortXmitData",
            "words of 4 bytes",
            "What the port sent, from the LRH to the ICRC, all data lanes together; without "
            "flow-control packets. Multiply by 4 for bytes.",
        ),
        ("PortRcvData", "words of 4 bytes", "What came in, counted like PortXmitData."),
        ("PortXmitPkts", "packets", "Packets that the port sent, without flow-control packets."),
        ("PortRcvPkts", "packets", "Packets that came in, without flow-control packets."),
        (
            "PortXmitWait",
            "ticks of 1 ns of emulated time",
            "How long a packet waited at this port for credit, all lanes added up. It is "
            "InfiniBand's sign of congestion, as pauses are Ethernet's. A device chooses its own "
            "tick; here it is 1 ns.",
        ),
        ("PortXmitWait_VLN", "ticks of 1 ns of emulated time", "PortXmitWait of lane N alone."),
        ("PortVLOpPacketsN", "packets", "Packets that left by virtual lane N."),
        ("PortVLOpDataN", "words of 4 bytes", "What left by virtual lane N, as PortXmitData."),
        (
            "PortXmitDiscards",
            "packets",
            "Packets that were dropped at egress: they waited at the head of the queue for longer "
            "than its lifetime, or the link was lost.",
        ),
        (
            "PortRcvSwitchRelayErrors",
            "packets",
            "Packets that the switch could not forward: there was no route to their LID, or no "
            "lane for their service level.",
        ),
        ("PortRcvConstraintErrors", "packets", "Packets refused on arrival, for their P_Key."),
        ("PortXmitConstraintErrors", "packets", "Packets refused at egress, for their P_Key."),
        ("LinkDownedCounter", "times", "How often the link of this port was lost."),
        (
            "SymbolErrorCounter",
            "packets",
            "Damaged packets, flow-control packets included. Each counts as one symbol error.",
        ),
        ("PortRcvErrors", "packets", "Damaged packets: their VCRC is wrong."),
        (
            "PortMalformedPacketErrors",
            "packets",
            "Packets that were dropped because they are shorter than their headers and CRCs, or "
            "longer than any may be, or came on a lane that the port does not have.",
        ),
        (
            "VL15Dropped",
            "packets",
            "Management packets (VL15 has no flow control) that found no room.",
        ),
    ),
    *_notes(
        "infiniband",
        OURS,
        ("fecn_marked", "packets", "Packets in which this port set FECN."),
        ("tx_flow_control", "packets", "Credit updates (flow-control packets) that were sent."),
        ("rx_flow_control", "packets", "Credit updates (flow-control packets) that came in."),
        ("rx_flow_control_errors", "packets", "Credit updates whose LPCRC or Op is wrong."),
        (
            "rx_credit_violations",
            "packets",
            "Packets that came without credit and were dropped. More than 0 is a fault of the "
            "sender.",
        ),
        (
            "dropped_packets",
            "packets",
            "Packets that ended at this port, whatever the reason and the lane: switch, lost link, "
            "a fault on its cable, or a NIC that found them damaged or malformed. What a NIC "
            "refuses though it is right (rx_other, rx_unknown_qp, ...) is not among them.",
        ),
    ),
)

_PORT = _notes(
    "port",
    OURS,
    (
        "tx_wire_bytes",
        "bytes",
        "What the port kept its cable busy with, headers, preamble, FCS and gap (on InfiniBand: "
        "all packets, credit updates too) included. Times 8, over the time and the rate of the "
        "link, it is the load.",
    ),
    (
        "queue_peak_bytes",
        "bytes",
        "The deepest that this port's egress queues ever were, all classes together.",
    ),
    (
        "rx_crc_discards",
        "frames",
        "Damaged frames that were dropped: the switch stores a frame before it sends it on. A "
        "cut-through switch has sent its beginning on by then.",
    ),
)

_NIC = (
    *_notes(
        "nic",
        references.HW_COUNTERS,
        (
            "packet_seq_err",
            "NAKs",
            "NAKs for a wrong PSN that the sender received: a packet was lost, or overtaken.",
        ),
        (
            "local_ack_timeout_err",
            "times",
            "How often a retransmission timer ran out: no ACK came for all of `timeout`.",
        ),
        ("rnr_nak_retry_err", "NAKs", "RNR NAKs received: the receiver had no buffer posted."),
        (
            "implied_nak_seq_err",
            "times",
            "A response was missing before the one that came, for example of a READ.",
        ),
        (
            "req_remote_invalid_request",
            "NAKs",
            "NAKs for requests that the responder calls invalid.",
        ),
        (
            "req_remote_access_errors",
            "NAKs",
            "NAKs for accesses that a memory key does not allow.",
        ),
        ("req_remote_operation_errors", "NAKs", "NAKs for requests that failed at the responder."),
        ("req_cqe_error", "messages", "Messages that ended with an error."),
        ("req_cqe_flush_error", "messages", "Messages flushed because their queue pair failed."),
        (
            "out_of_sequence",
            "packets",
            "Packets that reached a responder with a PSN ahead of the one it expected: one before "
            "them was lost or overtaken.",
        ),
        (
            "duplicate_request",
            "packets",
            "Packets that reached a responder a second time, mostly after a retransmission that "
            "was not needed.",
        ),
        ("out_of_buffer", "packets", "SENDs that found no receive posted, and were answered RNR."),
        ("resp_local_length_error", "messages", "SENDs that were longer than their receive."),
        ("resp_cqe_error", "receives", "Receives that ended with an error."),
        ("resp_cqe_flush_error", "receives", "Receives flushed because their queue pair failed."),
        ("resp_remote_access_errors", "requests", "Requests that a memory key did not allow."),
        (
            "np_ecn_marked_roce_packets",
            "packets",
            "Packets with CE that reached the receiver (notification point).",
        ),
        (
            "np_cnp_sent",
            "CNPs",
            "CNPs that the receiver sent to senders of marked packets (notification point).",
        ),
        ("rp_cnp_handled", "CNPs", "CNPs that slowed a sender down (reaction point)."),
        (
            "rp_cnp_ignored",
            "CNPs",
            "CNPs that did nothing: the NIC has no congestion control that listens to them, or "
            "the priority is not under control.",
        ),
        (
            "rx_icrc_encapsulated",
            "packets",
            "Packets whose ICRC was wrong. They are dropped and never change memory.",
        ),
    ),
    *_notes(
        "nic",
        OURS,
        ("tx_packets", "packets", "RDMA packets that the NIC sent, ACKs and CNPs included."),
        ("rx_packets", "packets", "RDMA packets that reached a queue pair of this NIC."),
        ("retransmitted_packets", "packets", "Packets that this NIC sent again."),
        ("resp_invalid_request", "requests", "Requests that this responder calls invalid."),
        ("resp_remote_operation_errors", "requests", "Requests that failed at this responder."),
        ("np_becn_sent", "packets", "Packets, other than CNPs, that carried BECN to a sender."),
        ("rp_becn_received", "packets", "Packets, other than CNPs, that came with BECN."),
        (
            "rx_crc_errors",
            "packets",
            "Frames that the cable damaged: FCS or VCRC is wrong. They are dropped.",
        ),
        ("rx_malformed", "packets", "Packets dropped: a length or a fixed field is wrong."),
        (
            "rx_other",
            "packets",
            "Packets dropped: neither RoCEv2 nor InfiniBand transport, or not for this NIC.",
        ),
        (
            "rx_unknown_qp",
            "packets",
            "Packets dropped: their queue pair does not exist, is not connected, or belongs to "
            "another sender.",
        ),
        ("rx_pkey_violations", "packets", "Packets dropped for a P_Key that does not match."),
        ("rx_qkey_violations", "packets", "Datagrams dropped for a Q_Key that does not match."),
        ("rx_qp_error", "packets", "Packets dropped because their queue pair has failed."),
        ("ipoib_tx_packets", "packets", "IP packets that left by IP over InfiniBand."),
        ("ipoib_rx_packets", "packets", "IP packets that came by IP over InfiniBand."),
        (
            "ipoib_tx_dropped",
            "packets",
            "IP packets that did not leave: not IPv4, too long, or for nobody on the fabric.",
        ),
        (
            "ipoib_rx_dropped",
            "packets",
            "Datagrams that held no IP packet, or came while the host's interface was down.",
        ),
        (
            "rx_memory_waits",
            "packets",
            "Packets that had to wait in the NIC for the host's memory (`hosts.path`).",
        ),
        (
            "rx_memory_discards",
            "packets",
            "Packets dropped because no more could wait for the host's memory (`hosts.path`).",
        ),
    ),
)

_TOTALS = _notes(
    "total",
    OURS,
    ("packets", "packets", "RDMA packets that all NICs sent, ACKs, CNPs and repeats included."),
    ("packet_hops", "packets", "Packets that switch ports sent: each counts once a switch."),
    (
        "drops_lossless",
        "packets",
        "Packets dropped for want of room on priorities that are lossless where it happened; on "
        "InfiniBand, packets that came without credit. A healthy lossless fabric has 0.",
    ),
    ("drops_lossy", "packets", "Packets dropped for want of room on all other priorities."),
    ("drops_watchdog", "packets", "Packets dropped by the PFC watchdog during storms."),
    (
        "drops_other",
        "packets",
        "Packets dropped for other reasons: no route, no lane, TTL, not IP, P_Key, lifetime at "
        "the head of the queue, VL15.",
    ),
    ("drops_fault", "packets", "Packets that faults of the spec dropped or damaged."),
    ("ce_marked", "packets", "Packets marked CE by all switch ports."),
    ("cnp", "CNPs", "CNPs that all receivers sent."),
    ("pause_frames", "frames", "Pause frames that all ports sent, those of NICs included."),
    ("retransmitted_packets", "packets", "Packets of all flows that were sent again."),
    ("credit_updates", "packets", "InfiniBand's flow-control packets of all ports."),
    ("pfc_storms", "storms", "Storms that PFC watchdogs found."),
    (
        "deadlocks",
        "deadlocks",
        "Circles of ports that were found waiting for each other for ever (`deadlocks` has each).",
    ),
    (
        "credit_wait_ns",
        "ns of emulated time",
        "How long packets waited for credit, all ports and lanes added up.",
    ),
)

NOTES = (*_PORT, *_ETHERNET, *_INFINIBAND, *_NIC, *_TOTALS)


def notes_of(name: str) -> list[CounterNote]:
    """All notes of a counter, of which there is one for each place that has such a counter."""
    return [note for note, pattern in _patterns() if pattern.fullmatch(name)]


def note_of(name: str, places: Iterable[str]) -> CounterNote | None:
    """The note of a counter in the first of these places that has it."""
    by_place = {note.where: note for note in notes_of(name)}
    return next((by_place[place] for place in places if place in by_place), None)


@cache
def _patterns() -> tuple[tuple[CounterNote, re.Pattern[str]], ...]:
    return tuple((note, pattern_of(note.name)) for note in NOTES)


@cache
def pattern_of(name: str) -> re.Pattern[str]:
    """What a note's name stands for: N is a number."""
    return re.compile(_NUMBERED.sub("([0-9]|1[0-5]|N)" if "VL" in name else "([0-7]|N)", name))


_NUMBERED = re.compile(r"(?<![A-Z])N(?![A-Za-z])|(?<=VL)N")
"""The N of a name that stands for a number."""
