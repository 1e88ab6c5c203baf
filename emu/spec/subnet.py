"""The `subnet:` section: settings of InfiniBand's subnet manager, under OpenSM's names.

The other options of OpenSM keep its defaults, and the defaults here are OpenSM's too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from emu.spec import references
from emu.spec.base import Model
from emu.spec.groups import expanded
from emu.spec.notes import note
from emu.spec.quantities import Hosts, Integer, named_like, number_key
from topologies.graph import Topology

DATA_VLS = 15
MANAGEMENT_VL = 15
SLS = 16
FULL_MEMBER = 0x8000
DEFAULT_PKEY = 0xFFFF
_PARTITION_KEYS = range(1, 0x7FFF)
"""0x7FFF belongs to the default partition, which has all hosts."""
IPOIB_HEADER_BYTES = 4
MANAGERS = 6
"""The most subnet managers. ibsim serves ten programs at once; four are left for tools and
queries of path records."""

Engine = Literal["updn", "minhop", "dnup", "ftree", "dor", "lash", "dfsssp", "sssp", "nue"]

Vl = Annotated[int, BeforeValidator(number_key), Field(ge=0, lt=DATA_VLS)]
"""A data lane as a mapping's key, which is text in JSON."""

Weight = Annotated[Integer, Field(ge=0, le=255)]


NodeNames = Annotated[tuple[str, ...], Field(max_length=1024)]
PartitionName = Annotated[str, named_like("[A-Za-z0-9_-]{1,32}", "up to 32 letters, digits, - _")]


def _one_per_sl(sl2vl: tuple[int, ...]) -> tuple[int, ...]:
    if len(sl2vl) != SLS:
        raise ValueError(f"has {len(sl2vl)} lanes; there are {SLS} service levels, SL 0 to SL 15")
    return sl2vl


class VlArbitration(Model):
    """The arbitration among virtual lanes at a port. VL15 precedes all others."""

    model_config = ConfigDict(
        json_schema_extra=note(
            why="as OpenSM sets its tables without a QoS file", source=references.OPENSM
        )
    )

    high: dict[Vl, Weight] = Field(
        default={0: 4},
        description="Lanes served first and their weights in units of 64 bytes, e.g. {0: 64}.",
    )
    low: dict[Vl, Weight] = Field(
        default=dict.fromkeys(range(1, DATA_VLS), 4),
        description="Lanes served when the high ones have nothing to send or are at their limit.",
    )
    high_limit: Weight = Field(
        default=0,
        description="Bytes from high lanes, in units of 4096, before a low one has a chance; "
        "0: one packet, 255: no limit.",
        json_schema_extra=note(unit="4096 bytes"),
    )

    @property
    def served(self) -> frozenset[int]:
        """The lanes with a weight in either table; packets of other lanes never leave."""
        lanes = (*self.high.items(), *self.low.items())
        return frozenset(vl for vl, weight in lanes if weight)


def _of_a_partition(pkey: int) -> int:
    own = pkey & ~FULL_MEMBER
    if pkey > own and own in _PARTITION_KEYS:
        raise ValueError(
            f"{pkey:#x} has the membership bit, {FULL_MEMBER:#x}, which the keys full "
            f"and limited determine; write {own:#x}"
        )
    if pkey not in _PARTITION_KEYS:
        first, last = _PARTITION_KEYS[0], _PARTITION_KEYS[-1]
        raise ValueError(f"{pkey:#x} is out of range; partitions have {first:#x} to {last:#x}")
    return pkey


class Partition(Model):
    """Hosts that may communicate with each other. Two limited members may not."""

    pkey: Annotated[Integer, AfterValidator(_of_a_partition)] = Field(
        description="The partition's key, without the membership bit.",
        json_schema_extra={
            "minimum": _PARTITION_KEYS[0],
            "maximum": _PARTITION_KEYS[-1],
            **note(unit="P_Key"),
        },
    )
    full: Hosts = Field(default=(), description="Hosts that are full members.")
    limited: Hosts = Field(
        default=(), description="Hosts that may only communicate with full members."
    )

    def placed(self, topology: Topology) -> Self:
        """The partition with the names of hosts in place of groups."""
        given = {kind: getattr(self, kind) for kind in ("full", "limited")}
        named = {kind: expanded(words, topology) for kind, words in given.items() if words}
        return self.model_copy(update=named)

    @property
    def members(self) -> tuple[str, ...]:
        return (*self.full, *self.limited)

    def key_of(self, host: str) -> int:
        """The P_Key of a host's queue pairs; the default P_Key if the host is not a member."""
        if host in self.full:
            return FULL_MEMBER | self.pkey
        return self.pkey if host in self.limited else DEFAULT_PKEY


class SubnetSpec(Model):
    """The subnet manager's policy. No effect on RoCE."""

    engine: Engine = Field(
        default="updn",
        description="OpenSM's routing engine.",
        json_schema_extra=note(
            why="up/down has no credit loop on any topology; OpenSM's own default, minhop, may "
            "have one",
            source=references.OPENSM,
        ),
    )
    roots: NodeNames = Field(
        default=(),
        description="Switches that updn, dnup and ftree take for roots. Unless given, OpenSM "
        "finds them; it finds none in a ring.",
    )
    managers: Hosts = Field(
        default=(),
        description="Hosts that run OpenSM, the master first; a standby takes over when the "
        "master fails. The first host unless given.",
    )
    lmc: Integer = Field(
        default=0,
        ge=0,
        le=7,
        description="Every host has 2 to this power LIDs, and a path to each; flows take turns.",
        json_schema_extra=note(
            unit="a power of 2",
            why="one LID for each port, as OpenSM assigns by default",
            source=references.OPENSM,
        ),
    )
    partitions: dict[PartitionName, Partition] = Field(
        default={},
        max_length=127,
        description="Partitions besides the default one (P_Key 0x7fff), which has all hosts; a "
        "traffic entry names the one it uses.",
    )
    part_enforce: Literal["off", "in", "out", "both"] = Field(
        default="off",
        description="Whether switches also check P_Keys at ports to hosts: on packets in, out, or "
        "both. Otherwise only the hosts check them.",
        json_schema_extra=note(
            why="hosts check P_Keys anyway; OpenSM's own default is both", source=references.OPENSM
        ),
    )
    sl2vl: Annotated[
        tuple[Annotated[Integer, Field(ge=0, le=MANAGEMENT_VL)], ...],
        AfterValidator(_one_per_sl),
        WithJsonSchema(
            {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": MANAGEMENT_VL},
                "minItems": SLS,
                "maxItems": SLS,
            }
        ),
    ] = Field(
        default=(*range(DATA_VLS), 7),
        description="Lane of each service level, 16 of them; 15 drops the service level's "
        "packets. Where a link has fewer lanes, the low bits count.",
        json_schema_extra=note(
            unit="virtual lanes",
            why="as OpenSM sets it: SL n rides on VL n, and SL 15 on VL 7, as VL 15 is for "
            "management",
            source=references.OPENSM,
        ),
    )
    vl_arbitration: VlArbitration = Field(
        default=VlArbitration(), description="Tables of VL arbitration, the same at every port."
    )
    ipoib_mtu: Literal[2048, 4096] = Field(
        default=2048,
        description="MTU of the broadcast group of IP over InfiniBand. The MTU of ib0 on every "
        "host is 4 bytes less, limited by hosts.nic.mtu.",
        json_schema_extra=note(
            unit="bytes",
            why="what OpenSM creates the broadcast group with",
            source=references.OPENSM,
        ),
    )
    head_of_queue_lifetime: Integer = Field(
        default=18,
        ge=0,
        le=31,
        description="Head-of-queue lifetime: how long a packet may wait at the head of its lane "
        "without credit before a switch drops it, 4.096 us times 2 to this power; above 19: "
        "for ever.",
        json_schema_extra=note(
            unit="4.096 us times 2 to this power",
            why="OpenSM's default, 0x12: about 1.07 s",
            source=references.OPENSM,
        ),
    )
    leaf_head_of_queue_lifetime: Integer = Field(
        default=16,
        ge=0,
        le=31,
        description="Head-of-queue lifetime at ports that lead to a host.",
        json_schema_extra=note(
            unit="4.096 us times 2 to this power",
            why="OpenSM's default, 0x10: about 268 ms",
            source=references.OPENSM,
        ),
    )
    vl_stall_count: Integer = Field(
        default=7,
        ge=0,
        le=7,
        description="Consecutive packets dropped after their head-of-queue lifetime before the "
        "switch discards all packets of the lane for 8 lifetimes; 0: never.",
        json_schema_extra=note(unit="packets", why="OpenSM's default", source=references.OPENSM),
    )

    def placed(self, topology: Topology) -> Self:
        """The subnet with the names of hosts in place of groups."""
        named: dict[str, Any] = {}
        if self.managers:
            named["managers"] = expanded(self.managers, topology)
        if self.partitions:
            of_each = {name: own.placed(topology) for name, own in self.partitions.items()}
            named["partitions"] = of_each
        return self.model_copy(update=named)

    def keys_of(self, host: str) -> tuple[int, ...]:
        """All P_Keys of a host."""
        own = (partition.key_of(host) for partition in self.partitions.values())
        return (DEFAULT_PKEY, *(key for key in own if key != DEFAULT_PKEY))

    def vl_of_sl(self, vls: int) -> tuple[int, ...]:
        """The lane of each service level on a link with `vls` data lanes; 15 drops the packets."""
        if vls == DATA_VLS:
            return self.sl2vl
        return tuple(vl if vl == MANAGEMENT_VL else vl % vls for vl in self.sl2vl)
