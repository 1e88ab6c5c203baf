"""The `devices:` section: the names that nodes, ports and rows have on real devices.

A run does not use them. `emu import` writes them, and `emu export` gives them back.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from emu.spec.base import Model
from emu.spec.quantities import named_like

DeviceText = Annotated[
    str, named_like(r"[ -{}~]{1,128}", "up to 128 printable characters of ASCII without |")
]
ConfigFile = Annotated[
    str,
    named_like(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(/config_db)?\.json", "NAME.json or NAME/config_db.json"
    ),
]


class Device(Model):
    """The device that a node stands for."""

    name: DeviceText | None = Field(
        default=None, description="Its name there, e.g. its hostname; the node's unless given."
    )
    model: DeviceText | None = Field(
        default=None, description="Its model, e.g. ACS-MSN2700: SONiC's hwsku."
    )
    type: DeviceText | None = Field(
        default=None,
        description="Its type there, e.g. BackEndToRRouter; by role or tier unless given.",
    )
    file: ConfigFile | None = Field(
        default=None,
        description="The file of its configuration in the folder of `emu export sonic`. If any "
        "device has one, only those that have one are written.",
    )
    ports: dict[str, DeviceText] = Field(
        default={}, description="Names of its ports by neighbour, e.g. {spine1: Ethernet4}."
    )
    names: dict[str, dict[str, DeviceText]] = Field(
        default={},
        description="Names of rows by table, where they differ from those that `emu export` "
        "chooses, e.g. {WRED_PROFILE: {AZURE_LOSSLESS: RDMA}}.",
    )
