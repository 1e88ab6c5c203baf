"""The lab's side of the process that emulates the hosts' NICs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ready
from emu.lab.ipc.rpc import RpcClient
from emu.lab.ipc.setup import NicsReady, SetUpNics
from emu.lab.processes import wait_for
from emu.measure.counter_table import PORT
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import Row, Rows, SharedCounters
from emu.spec.scenario import Spec, spec_from_json

_OF_PORT = "port "
PORT_COLUMNS = [(_OF_PORT + name, width) for name, width in PORT.cells.items()]
"""The columns for the counters of a host's port; they follow those of its NIC."""
FLOW_COLUMNS = [("bytes", 1), ("delivered", 1), ("status", 1), ("failed_ns", 1)]


def is_of_port(name: str) -> bool:
    """Whether a column of a host's row is a counter of its port."""
    return name.startswith(_OF_PORT)


def port_counters(row: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """The port counters in a host's row."""
    return {name[len(_OF_PORT) :]: own for name, own in row.items() if is_of_port(name)}


@dataclass(frozen=True)
class NicProcess:
    """A NIC process that is ready to start, or has started."""

    pid: int
    channel: Channel
    rpc: RpcClient
    """The channel for queries to the running NICs."""
    hosts: SharedCounters
    """The counters of NICs and their ports: a row for each host."""
    flows: SharedCounters
    """The progress of the workload's flows."""

    def close_counters(self) -> None:
        self.hosts.close()
        self.flows.close()


def set_up_nics(
    channel: Channel, setup: SetUpNics, lab: str, files: Sequence[int] = ()
) -> NicProcess:
    """Sets up the NICs of this lab in a new process. `files`: open files of the set-up."""
    pid = channel.expect(Ready).pid
    channel.send(setup, files)
    ready = wait_for(channel, NicsReady)
    hosts, flows, queries = channel.take_files()
    return NicProcess(
        pid,
        channel,
        RpcClient(Channel.inherited(queries), "the NIC process", lab),
        SharedCounters(hosts, ready.hosts),
        SharedCounters(flows, ready.flows),
    )


def spec_of_nics(setup: SetUpNics) -> Spec:
    """The spec; in an interactive lab without its faults, because `Start` carries those of NICs."""
    spec = spec_from_json(setup.spec)
    return spec.model_copy(update={"faults": ()}) if setup.interactive else spec


def rows_of(nics: NicProcess | None) -> Rows:
    """The rows of all hosts; none without NICs."""
    return nics.hosts.read()[1] if nics else {}


def waits_on(rows: Rows) -> dict[str, int]:
    """PortXmitWait of each host, from the hosts' rows."""
    return {host: row[XMIT_WAIT][0] for host, row in rows.items()}


def added(row: Row, other: Row) -> Row:
    """The sums of two rows of the same host; an empty row counts nothing."""
    if not row or not other:
        return row or other
    return {
        name: [a + b for a, b in zip(cells, other[name], strict=True)]
        for name, cells in row.items()
    }
