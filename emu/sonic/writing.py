"""A spec -> the CONFIG_DB of each switch.

Rows of a table that have no name in the spec are called as SONiC ships them: AZURE,
AZURE_LOSSLESS, scheduler.0, pg_lossless_100000_5m_profile. `devices.NAME.names` has other names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from emu.errors import UsageError
from emu.sonic.folder import CONFIG_NAME
from emu.sonic.not_written import keys_without_a_table
from emu.sonic.rows import Names, Tables, renamed
from emu.sonic.writing_buffers import write_buffers
from emu.sonic.writing_ports import write_ports
from emu.sonic.writing_qos import write_qos
from emu.spec.scenario import Spec

_ORDER = (
    *("DEVICE_METADATA", "PORT", "CABLE_LENGTH", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA"),
    *("DSCP_TO_TC_MAP", "DOT1P_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP"),
    *("MAP_PFC_PRIORITY_TO_QUEUE", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "PORT_QOS_MAP"),
    *("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "WRED_PROFILE", "SCHEDULER"),
    *("QUEUE", "PFC_WD"),
)


@dataclass(frozen=True)
class Written:
    """The tables of one switch."""

    tables: Tables
    notes: tuple[str, ...]
    """What was rounded, and keys of the spec without a table."""

    @property
    def text(self) -> str:
        return json.dumps(self.tables, indent=4) + "\n"


def export(spec: Spec) -> dict[str, Written]:
    """Each file with its tables, of all switches that have a file. Raises UsageError."""
    if not spec.fabric_kind.is_ethernet:
        raise UsageError(f"{spec.name}: SONiC's switches are Ethernet switches; set fabric to roce")
    files = {name: device.file for name, device in spec.devices.items() if device.file}
    switches = spec.topology.build().switch
    if not files:
        files = {name: f"{name}/{CONFIG_NAME}" for name in switches}
    return {file: tables_of(spec, name) for name, file in files.items() if name in switches}


def left_out(spec: Spec) -> list[str]:
    """The switches that are not exported, since they have no file and others have."""
    files = [name for name, device in spec.devices.items() if device.file]
    return [name for name in spec.topology.build().switch if files and name not in files]


def tables_of(spec: Spec, switch: str, names: Names | None = None) -> Written:
    """The tables of one switch. `names` of rows are those of the spec unless they are given."""
    tables: Tables = {}
    notes: dict[str, None] = {}

    def note(text: str) -> None:
        notes[text] = None

    for write in (write_ports, write_qos, write_buffers):
        write(spec, switch, tables, note)
    for text in keys_without_a_table(spec, switch):
        note(text)
    if names is None:
        device = spec.devices.get(switch)
        names = device.names if device else {}
    ordered = {table: tables[table] for table in _ORDER if table in tables}
    return Written(renamed(ordered, names), tuple(notes))
