"""The `hosts:` section: a host is its RDMA NIC.

The longest data packet of a RoCE NIC, on a cable:

    preamble 8 | Ethernet 14 | VLAN tag 4, if any | IPv4 20 | UDP 8 | BTH 12 | RETH 16 | mtu
    | ICRC 4 | FCS 4 | gap 12
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.cc_keys import CongestionControlKeys
from emu.spec.ecn_feedback import Cnp
from emu.spec.host_path import HostPath
from emu.spec.notes import note
from emu.spec.processor_time import FREE, ProcessorTime
from emu.spec.quantities import AUTO, AUTO_WRITTEN, Integer, Time
from emu.spec.recovery import RECOVERIES, Recovery, RecoveryName
from emu.spec.scale_up import ScaleUp

MTUS = (256, 512, 1024, 2048, 4096)
"""The path MTUs of InfiniBand and RoCE, in bytes of payload."""
_OVERHEAD = 8 + 14 + 20 + 8 + 12 + 16 + 4 + 4 + 12
_VLAN_TAG = 4


def _legal_mtu(mtu: int) -> int:
    if mtu not in MTUS:
        legal = ", ".join(map(str, MTUS))
        raise ValueError(f"an RDMA packet cannot carry {mtu} bytes of payload; choose {legal}")
    return mtu


def _switched(value: object) -> object:
    """`on` and `off` are text in YAML 1.2."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


class Nic(CongestionControlKeys):
    """The RDMA NIC of a host."""

    mtu: Annotated[Integer, AfterValidator(_legal_mtu)] = Field(
        default=4096,
        description="Path MTU, payload bytes of a packet: 256, 512, 1024, 2048 or 4096.",
        json_schema_extra=note(
            unit="bytes",
            why="the largest path MTU; the overhead of headers is smallest there",
            source=references.IBTA,
        ),
    )
    cnp: Cnp = Field(default=Cnp(), description="How a receiver limits its CNPs.")
    recovery: RecoveryName = Field(
        default="go-back-n",
        description="What a sender retransmits after a loss. "
        + " ".join(f"{name}: {scheme.resends}." for name, scheme in RECOVERIES.items()),
        json_schema_extra=note(
            why="reliable connections go back to the lost packet", source=references.IBTA
        ),
    )
    reordering: Integer = Field(
        default=0,
        ge=0,
        le=65_536,
        description="selective-repeat: packets that may overtake another before a NAK reports it "
        "missing, or a READ requests it again; for fabrics whose switches spray packets over "
        "several paths.",
        json_schema_extra=note(
            unit="packets",
            why="0: a path that keeps the order needs no tolerance, and a gap is a loss",
        ),
    )
    max_rd_atomic: Integer = Field(
        default=16,
        ge=1,
        le=16,
        description="READs that a queue pair may have outstanding.",
        json_schema_extra=note(unit="READs", why="16, as mlx5 NICs allow", source=references.MLX5),
    )
    dscp: Integer = Field(
        default=26,
        ge=0,
        le=63,
        description="DSCP of RDMA packets; the switches' classes map it to a priority. "
        "Unless given, that of the preset of the host's switch, if it has one: 26, or 3 with "
        "sonic.",
        json_schema_extra=note(
            unit="DSCP",
            why="the convention for RoCE; presets of NVIDIA and Cisco put 26 on the lossless "
            "priority 3",
            source=references.ROCE_DSCP,
        ),
    )
    cnp_dscp: Integer = Field(
        default=48,
        ge=0,
        le=63,
        description="DSCP of CNPs, by default on priority 6. Unless given, that of the preset of "
        "the host's switch, if it has one: 48.",
        json_schema_extra=note(
            unit="DSCP",
            why="the convention for CNPs: class selector 6, served before all data",
            source=references.ROCE_DSCP,
        ),
    )
    vlan: Integer | None = Field(
        default=None,
        ge=0,
        le=4094,
        description="VID of the VLAN tag on RDMA packets over Ethernet, whose PCP is the priority "
        "of the packets; 0 is a priority tag without a VLAN. No tag unless given. Switches leave "
        "tags as they are; `vlans` says which hosts they part.",
        json_schema_extra=note(unit="VLAN ID"),
    )
    ecn: Annotated[bool, BeforeValidator(_switched)] = Field(
        default=True,
        description="Whether RDMA packets are ECN-capable; off: switches do not mark them.",
        json_schema_extra=note(
            why="RoCE NICs send ECN-capable packets; without it a switch drops or pauses instead "
            "of marking",
            source=references.IBTA_ROCE,
        ),
    )
    ack_dscp: Integer | None = Field(
        default=None,
        ge=0,
        le=63,
        description="DSCP of acknowledgements; that of the acknowledged data unless given.",
        json_schema_extra=note(unit="DSCP"),
    )
    pause_response_ps: Annotated[Time | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="pause_response",
        description="Time from a pause frame's arrival until the port starts no new packet. auto: "
        "none; automatic headroom still allows for the time that 802.3 allows.",
        json_schema_extra=note(
            why="a pause takes effect at once, so that results follow from the cable alone; real "
            "ports take up to the quanta that 802.3 allows",
            source=references.DOT3,
        ),
    )
    ack_every: Integer = Field(
        default=16,
        ge=1,
        le=1024,
        description="Packets of a message between acknowledgements; 1 with cc: dctcp or swift, "
        "which need every ACK.",
        json_schema_extra=note(
            unit="packets",
            why="NICs acknowledge several packets at once; one ACK for 16 packets of 4096 bytes is "
            "0.1 % of the bytes on a link",
        ),
    )
    timeout: Integer = Field(
        default=14,
        ge=1,
        le=31,
        description="Retransmission timer, 4.096 us times 2 to this power.",
        json_schema_extra=note(
            unit="4.096 us times 2 to this power",
            why="67 ms, the value in rdma-core's and perftest's programs; with a shorter one, "
            "queue pairs that are only paused for a while give up",
            source=references.RDMA_CORE,
        ),
    )
    retry_count: Integer = Field(
        default=7,
        ge=0,
        le=7,
        description="Retries without progress before a flow gives up. Each expiry of the "
        "retransmission timer is a retry, even if flow control has stopped the port so that "
        "nothing can be retransmitted.",
        json_schema_extra=note(
            unit="retries",
            why="7 is the largest value of the field's 3 bits, and NCCL's default",
            source=references.NCCL,
        ),
    )
    window: Integer | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Packets that a queue pair may have in flight. Unless given: no limit, or "
        "with selective-repeat the BDP of its path.",
        json_schema_extra=note(unit="packets"),
    )
    sl: Integer = Field(
        default=0,
        ge=0,
        le=15,
        description="Service level on InfiniBand, which chooses the virtual lane.",
        json_schema_extra=note(
            unit="service level",
            why="SL 0 is what a path record has without a QoS policy",
            source=references.OPENSM,
        ),
    )
    global_route: Annotated[bool, BeforeValidator(_switched)] = Field(
        default=False,
        description="Whether InfiniBand packets have a global route header, 40 bytes with the "
        "GIDs of both ends, which packets to another subnet need.",
        json_schema_extra=note(
            why="packets within one subnet do not need it", source=references.IBTA
        ),
    )

    @property
    def tag_bytes(self) -> int:
        """The size of a frame's VLAN tag; 0 without a tag."""
        return 0 if self.vlan is None else _VLAN_TAG

    @property
    def largest_frame_bytes(self) -> int:
        """The bytes that its longest data packet occupies on an Ethernet cable."""
        return self.mtu + self.overhead_bytes

    @property
    def overhead_bytes(self) -> int:
        """The bytes besides payload of its longest data packet: headers, FCS, preamble and gap."""
        return _OVERHEAD + self.tag_bytes

    @property
    def recovery_scheme(self) -> Recovery:
        """The NIC's scheme of loss recovery."""
        return RECOVERIES[self.recovery]

    @property
    def has_window_of_path(self) -> bool:
        """Whether the window of its queue pairs is the BDP of their path."""
        return self.recovery_scheme.limits_window and self.window is None


class HostSpec(Model):
    """One host."""

    nic: Nic = Field(default=Nic(), description="The RDMA NIC.")
    path: HostPath | None = Field(
        default=None,
        description="The path between the NIC and memory; it adds no delay unless given.",
    )


class HostDefaults(HostSpec):
    """Settings of all hosts, and settings that differ for single hosts."""

    gpus: Integer | None = Field(
        default=None,
        ge=2,
        le=64,
        description="The number of consecutive hosts that are the GPUs of one server. Each has "
        "its own NIC; `scale_up` connects them as well. Unless given, each host is a server.",
        json_schema_extra=note(unit="hosts"),
    )
    scale_up: ScaleUp = Field(
        default=ScaleUp(), description="The links between the GPUs of a server."
    )

    stack: Literal["rdma", "tcp"] = Field(
        default="rdma",
        description="The transport of the traffic: RDMA, or TCP as a baseline: one connection "
        "between the hosts' kernels for each flow, over the RoCE fabric's lossy class or over "
        "IPoIB. TCP needs the real clock.",
        json_schema_extra=note(why="RDMA is the purpose of the fabric"),
    )
    cpu: ProcessorTime = Field(
        default=FREE,
        description="The emulated time that verbs programs on hosts take to compute, on the exact "
        "clock. free: none, and results are the same in every run; measured x FACTOR: FACTOR times "
        "the processor time that a program uses between two waits, so results differ from run to "
        "run. The real clock does not use it.",
        json_schema_extra=note(why="only then does a program have the same results in every run"),
    )
    nodes: dict[str, HostSpec] = Field(
        default={},
        description="Settings that differ for a host, by name, e.g. {h1: {nic: {mtu: 1024}}}.",
    )
