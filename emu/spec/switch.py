"""The `switches:` section: the settings of switches.

Every key has a default, because the same model also holds the few keys that differ for a role or a
single switch (see `merge`). For the same reason contradictions between keys are found in `rules`,
after all settings are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from emu.fabric_kind import Framing
from emu.spec import references
from emu.spec.base import Model
from emu.spec.classes import PRIORITIES, Classes
from emu.spec.ecn_feedback import Fecn
from emu.spec.merge import inherit
from emu.spec.notes import note
from emu.spec.quantities import (
    AUTO,
    AUTO_WRITTEN,
    OFF,
    OFF_SCHEMA,
    OFF_WRITTEN,
    Fraction,
    Integer,
    Priority,
    PriorityKey,
    Size,
    SizeOrAlpha,
    Threshold,
    Time,
)
from emu.spec.queue_discipline import Discipline, QueueDiscipline
from emu.spec.routing import Routing
from emu.spec.subnet import Vl
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec

OPERATIONAL_VLS = (1, 2, 4, 8, 15)
"""The numbers of lanes that InfiniBand's PortInfo.OperationalVLs can express."""

CREDIT_BLOCK = 64
CREDIT_LIMIT = 2048 * CREDIT_BLOCK
"""A receiver never advertises more than 2048 blocks of 64 bytes (IBTA vol 1, 7.9.4)."""


LaneBuffer = Annotated[Size, Field(ge=CREDIT_BLOCK, le=CREDIT_LIMIT)]


class Watchdog(Model):
    """The PFC watchdog (SONiC): a queue that a neighbour pauses without end no longer obeys PFC."""

    model_config = ConfigDict(
        json_schema_extra=note(
            why="SONiC's `pfcwd start_default`, for up to 32 ports", source=references.SONIC_PFCWD
        )
    )

    detection_ps: Time = Field(
        default=200_000_000_000,
        alias="detection",
        gt=0,
        description="How long a queue with packets must be paused without sending any before the "
        "watchdog detects a storm.",
    )
    restoration_ps: Time = Field(
        default=200_000_000_000,
        alias="restoration",
        gt=0,
        description="How long the port must receive no pause before the queue is restored.",
    )
    poll_ps: Time = Field(
        default=200_000_000_000, alias="poll", gt=0, description="Polling interval."
    )
    action: Literal["drop", "forward", "alert"] = Field(
        default="drop",
        description="Action on the packets of a stormed queue. drop: drops them. forward: sends "
        "them in spite of the pause. alert: none; the storm is only counted.",
    )


class Pfc(Model):
    """Priority flow control: a pause frame stops one priority of the sender (802.1Qbb)."""

    frames: Literal["pfc", "pause"] = Field(
        default="pfc",
        description="pfc: a pause frame stops single priorities. pause: a pause frame stops all "
        "traffic (802.3x).",
        json_schema_extra=note(
            why="priority flow control, so that other priorities are not paused",
            source=references.DOT1QBB,
        ),
    )
    priorities: tuple[Priority, ...] = Field(
        default=(3,),
        min_length=1,
        description="Lossless priorities, e.g. [3].",
        json_schema_extra=note(
            unit="priorities", why="the convention for RoCE", source=references.ROCE_DSCP
        ),
    )
    xoff: Threshold = Field(
        default=SizeOrAlpha(alpha_1024=1024),
        description="How much of the shared pool one port and priority may use before its sender "
        "is paused: bytes, or e.g. alpha 1/8 for an eighth of the free part.",
        json_schema_extra=note(
            why="a threshold that adapts to the free buffer: one busy port may fill half of the "
            "pool, seven may fill an eighth each; switches ship with alpha 1",
            source=references.SONIC_BUFFERS,
        ),
    )
    xon_given: Annotated[Size | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="xon",
        description="Bytes at which the sender may resume, if xoff is in bytes; below xoff. auto: "
        "two thirds of xoff.",
        json_schema_extra=note(
            why="far enough below xoff that a port does not alternate quickly between pause and "
            "resume, with enough data left to send until the sender resumes"
        ),
    )
    xon_offset: Size = Field(
        default=4608,
        lt=2**32,
        description="Bytes below xoff at which the sender may resume, if xoff is an alpha.",
        json_schema_extra=note(
            why="SONiC's value for a switch with a Trident 3 (Arista 7050CX3)",
            source=references.SONIC_PG,
        ),
    )
    headroom_bytes: Annotated[Size | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="headroom",
        description="Buffer reserved per port and priority for packets that arrive after the "
        "pause was sent; auto computes it from rate, cable, MTU and the neighbour's response time.",
        json_schema_extra=note(
            why="the least headroom without loss: three frames, a pause frame, and the bytes that "
            "arrive in two cable delays and the response time",
            source=references.DOT1QBB,
        ),
    )

    @property
    def xon_bytes(self) -> int:
        """The resume threshold as given or derived from xoff, if xoff is in bytes."""
        if self.xon_given is not None:
            return self.xon_given
        return self.xoff.size_bytes * 2 // 3

    @property
    def xon_below_xoff(self) -> int:
        """Bytes between the two thresholds."""
        if not self.xoff.size_bytes:
            return self.xon_offset
        return max(0, self.xoff.size_bytes - self.xon_bytes)


class Curve(Model):
    """The WRED curve: the probability of a mark as a function of the queue's depth."""

    kmin_given: Annotated[Size | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="kmin",
        description="Depth up to which nothing is marked. auto computes it from rate, cable, MTU "
        "and buffer.",
        json_schema_extra=note(
            why="100 KB for each 25 Gbit/s, but at least two packets and the cable's round trip, "
            "and at most a quarter of what a port may hold before it pauses or drops: marks come "
            "before pauses",
            source=references.HPCC_NS3,
        ),
    )
    kmax_given: Annotated[Annotated[Size, Field(lt=2**32)] | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="kmax",
        description="Depth from which every packet is marked. auto computes it from kmin and "
        "buffer.",
        json_schema_extra=note(
            why="four times kmin, but at most what a port may hold before it pauses or drops",
            source=references.HPCC_NS3,
        ),
    )
    pmax: Fraction = Field(
        default=0.2,
        description="Probability of a mark just below kmax; it is 0 at kmin and rises linearly.",
        json_schema_extra=note(
            why="the value for DCQCN in HPCC's simulations", source=references.HPCC_NS3
        ),
    )

    @property
    def kmin_bytes(self) -> int:
        """Kmin of a curve of `Spec.port`, in which it is derived if it is not given."""
        assert self.kmin_given is not None, "only Spec.port knows it"
        return self.kmin_given

    @property
    def kmax_bytes(self) -> int:
        assert self.kmax_given is not None, "only Spec.port knows it"
        return self.kmax_given

    @property
    def pmax_2_32(self) -> int:
        """`pmax` for markers (emu/core/switch/wred.h), where 2^32 - 1 is certainty."""
        return round(self.pmax * (2**32 - 1))


class Ecn(Curve, QueueDiscipline):
    """WRED marking on the instantaneous depth of a packet's egress queue."""

    at: Literal["enqueue", "dequeue"] = Field(
        default="enqueue",
        description="The depth that determines the mark. enqueue: the depth that a packet finds "
        "when it joins the queue. dequeue: the depth that it leaves behind.",
        json_schema_extra=note(
            why="the usual description of switches' markers, and possible before a packet is queued"
        ),
    )
    queues: dict[PriorityKey, Annotated[Curve | None, OFF, OFF_WRITTEN, OFF_SCHEMA]] = Field(
        default={},
        description="Queues with their own curve, e.g. {3: {kmin: 50KB}, 0: off}.",
    )
    marker: Literal["auto", "ebpf", "red", "shim"] = Field(
        default="auto",
        description="The software that marks: a tc eBPF program on the switch ports, the kernel's "
        "RED qdisc with the nearest curve that it can express, or the emulator's own switches. "
        "auto takes eBPF if it can be loaded.",
        json_schema_extra=note(why="eBPF runs in the kernel, where a real Linux switch would mark"),
    )

    @property
    def by_shim_only(self) -> bool:
        """Whether only the emulator's own switch can mark: eBPF runs before a packet is queued."""
        return self.marker == "shim" or self.at == "dequeue"

    @property
    def may_be_ebpf(self) -> bool:
        return not self.by_shim_only and self.marker != "red"

    def discipline(self, spec: Spec, port: Port) -> Discipline | None:
        if spec.fabric_kind.framing is not Framing.ETHERNET:
            return None
        curves = {queue: curve for queue in range(PRIORITIES) if (curve := self.curve(queue))}
        parameters: dict[str, int | list[int]] = {"at_dequeue": self.at == "dequeue"}
        for name in ("kmin_bytes", "kmax_bytes", "pmax_2_32"):
            parameters[name] = [
                getattr(curves[queue], name) if queue in curves else 0
                for queue in range(PRIORITIES)
            ]
        return Discipline("wred", tuple(curves), parameters, may_be_kernels=not self.by_shim_only)

    def curve(self, queue: int) -> Curve | None:
        """The curve of a queue; None: the queue does not mark."""
        if queue not in self.queues:
            return self
        own = self.queues[queue]
        return None if own is None else inherit(inherit(Curve(), self), own)


def _operational(vls: int) -> int:
    if vls not in OPERATIONAL_VLS:
        raise ValueError(f"a port cannot run {vls} data VLs; choose one of 1, 2, 4, 8, 15")
    return vls


class Credits(Model):
    """InfiniBand's flow control: credits per virtual lane. No effect on RoCE."""

    vls: Annotated[Integer, AfterValidator(_operational)] = Field(
        default=1,
        description="Data virtual lanes in operation: 1, 2, 4, 8 or 15.",
        json_schema_extra=note(
            unit="virtual lanes",
            why="one lane carries everything unless service levels are used",
        ),
    )
    buffer_bytes: LaneBuffer = Field(
        default=65_536,
        alias="buffer",
        description="Receive buffer of each virtual lane at each port; credits can express 128KiB "
        "at most.",
        json_schema_extra=note(
            why="more than a packet of 4096 bytes and the bytes on some hundred metres of cable "
            "at 100 Gbit/s; half of what credits can express",
            source=references.IBTA,
        ),
    )
    lanes: dict[Vl, LaneBuffer] = Field(
        default={}, description="Virtual lanes whose buffer differs, e.g. {1: 16KiB}."
    )

    def buffer_of(self, vl: int) -> int:
        """The size of a lane's buffer at a port."""
        return self.lanes.get(vl, self.buffer_bytes)


class Scheduling(Model):
    """The order in which an egress port serves its queues."""

    strict: tuple[Priority, ...] = Field(
        default=(6,),
        description="Queues served before all others, highest first (CNPs ride on 6).",
        json_schema_extra=note(
            unit="queues",
            why="CNPs must not wait behind the data of the congestion that they signal",
            source=references.ROCE_DSCP,
        ),
    )
    weights: dict[PriorityKey, Annotated[Integer, Field(ge=1, le=100)]] = Field(
        default={},
        description="Weights of the other queues, e.g. {3: 50, 0: 50}; 1 unless given.",
    )

    def quantum(self, queue: int, largest: int) -> int:
        """The bytes of a queue in a round in which the queue of the highest weight sends
        `largest`."""
        heaviest = max(self.weights.values(), default=1)
        return max(1, largest * self.weights.get(queue, 1) // heaviest)


class PortSpec(Model):
    """Settings that may differ from port to port."""

    classes: Classes = Field(
        default=Classes(),
        description="Priorities of packets that a port receives, and queues of packets that it "
        "sends.",
    )
    pfc: Annotated[Pfc | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="Priority flow control; off unless given. `on` takes the defaults.",
        json_schema_extra=note(why="Ethernet drops unless an operator configures PFC"),
    )
    ecn: Annotated[Ecn | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="ECN marking; off unless given. `on` takes the defaults.",
        json_schema_extra=note(why="switches mark nothing unless an operator configures WRED"),
    )
    fecn: Annotated[Fecn | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="Congestion marks on InfiniBand; off unless given. `on` takes the defaults.",
        json_schema_extra=note(
            why="OpenSM leaves congestion control off (congestion_control FALSE)",
            source=references.OPENSM,
        ),
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

    @property
    def lossless_queues(self) -> frozenset[int]:
        """The queues of priorities with PFC."""
        priorities = self.pfc.priorities if self.pfc else ()
        return frozenset(map(self.classes.queue_of, priorities))

    def has_lossless(self, queue: int | None) -> bool:
        """Whether a queue is lossless; None: whether any queue without its own ECN curve is."""
        if queue is not None:
            return queue in self.lossless_queues
        return bool(self.lossless_queues - (self.ecn.queues.keys() if self.ecn else set()))


class SwitchSpec(PortSpec):
    """One switch."""

    preset: Literal["none", "nvidia", "sonic", "cisco", "dctcp"] = Field(
        default="none",
        description="Classes, PFC, ECN, scheduling, buffer and alpha as operators configure them; "
        "keys beside it override single values. A preset of a role or a switch replaces that of "
        "all switches.",
        json_schema_extra=note(why="your own spec shows every setting"),
    )
    latency_given: Annotated[Time | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="latency",
        description="Latency of the switch without queues. auto: 600 ns on Ethernet; on "
        "InfiniBand by its fastest port, 170 ns up to FDR, 90 ns with EDR, 130 ns with HDR, 150 ns "
        "from NDR on.",
        json_schema_extra=note(
            why="vendors' figures for switches of each fabric and speed. Confidence: the figures "
            "for FDR, EDR and HDR are well known, but were not compared with a copy of the data "
            "sheets; for NDR NVIDIA publishes none, resellers publish less than 150 ns, and one "
            "knowledge base 330 ns",
            source=references.SWITCH_LATENCY,
        ),
    )
    switching: Literal["auto", "store-and-forward", "cut-through"] = Field(
        default="auto",
        description="Whether a switch forwards a packet once all of it has arrived, or once its "
        "header has; auto is cut-through on InfiniBand and store-and-forward on Ethernet.",
        json_schema_extra=note(
            why="InfiniBand switches cut through; Ethernet switches at full features store and "
            "forward"
        ),
    )
    buffer_bytes: Size = Field(
        default=2_000_000,
        alias="buffer",
        gt=0,
        lt=2**32,
        description="Packet buffer of the switch, shared by its ports.",
        json_schema_extra=note(
            why="small, so that an incast of few hosts fills it as it fills the tens of megabytes "
            "of a real switch with many"
        ),
    )
    reserved_bytes: Size = Field(
        default=0,
        alias="reserved",
        description="Bytes of the buffer reserved for each port and priority; the rest, less all "
        "headroom, is the shared pool.",
        json_schema_extra=note(
            why="0: everything but headroom is shared, which is the simplest to reason about"
        ),
    )
    alpha: float = Field(
        default=1.0,
        gt=0,
        le=256,
        strict=True,
        description="A lossy queue may grow to alpha times the free shared buffer, and by the "
        "reserved bytes of a port and priority.",
        json_schema_extra=note(
            unit="times the free shared buffer",
            why="a queue may take half of the buffer while no other queue is busy; SONiC's "
            "dynamic_th 0",
            source=references.SONIC_BUFFERS,
        ),
    )
    queue_limit_bytes: Size | None = Field(
        default=None,
        alias="queue_limit",
        gt=0,
        description="The most bytes of a lossy queue, in place of the limit by alpha; no such "
        "limit unless given.",
    )
    credits: Credits = Field(
        default=Credits(),
        description="Credits of an InfiniBand switch; unused where fabric is roce.",
    )
    routing: Routing = Field(default=Routing(), description="The choice among several equal paths.")
    watchdog: Annotated[Watchdog | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="PFC watchdog; off unless given. `on` takes SONiC's defaults, 200 ms each.",
        json_schema_extra=note(
            why="SONiC's watchdog must be started as well", source=references.SONIC_PFCWD
        ),
    )
    scheduling: Scheduling = Field(
        default=Scheduling(), description="Order in which an egress port serves its queues."
    )
    ports: dict[str, PortSpec] = Field(
        default={},
        description="Settings that differ on a port, by the neighbour's name, e.g. {spine1: {pfc: "
        "off}} for leaf1:spine1.",
    )

    @property
    def latency_ps(self) -> int:
        """The latency of a switch of `Spec.switch`, in which it is derived if it is not given."""
        assert self.latency_given is not None, "only Spec.switch knows it"
        return self.latency_given


class SwitchDefaults(SwitchSpec):
    """Settings of all switches, and settings that differ for a role or a single switch."""

    roles: dict[str, SwitchSpec] = Field(
        default={},
        description="Settings that differ for a role or a tier, e.g. {spine: {buffer: 4MB}}. In "
        "every topology, tier1 is the switches with cables to hosts, tier2 those one cable farther "
        "from hosts, and so on; a role's keys override a tier's.",
    )
    nodes: dict[str, SwitchSpec] = Field(
        default={},
        description="Settings of a switch that differ from its role, by name, e.g. "
        "{leaf1: {pfc: off}}.",
    )
