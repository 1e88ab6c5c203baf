"""What the shim and the NIC process have in common: how they are set up, run, and looked at."""

from __future__ import annotations

import os
import pickle

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done, Json, Setup
from emu.measure.observation import Observation
from emu.spec.scenario import Spec, spec_from_json
from emu.subnet import Subnet


def subnet_of(setup: Setup) -> Subnet | None:
    """What the subnet manager decided, on InfiniBand."""
    told = setup.options.get("subnet")
    return None if told is None else Subnet.from_json(told)


def is_managed(spec: Spec, options: Json) -> bool:
    """Whether somebody routes anew when links change: InfiniBand's subnet manager, and on Ethernet
    the lab (`emu.lab.rerouting`), where anybody may break them."""
    return spec.fabric_kind.has_subnet_manager or bool(options.get("standing"))


def line_of(setup: Setup, files: list[int]) -> Channel | None:
    """The shim's line to whoever routes anew, where there is one: the first of the open files that
    came along with the `Setup`, which is taken out of them."""
    if not is_managed(spec_of(setup), setup.options):
        return None
    return Channel.inherited(files.pop(0))


def slowdown_of(options: Json) -> float:
    return float(options["slowdown"])


def spec_of(setup: Setup) -> Spec:
    return spec_from_json(setup.spec)


def send_observation(channel: Channel, observation: Observation, value: Json) -> None:
    """Ends the job: `value` as JSON, and the observation as an open file beside it."""
    handed = os.memfd_create("observation")
    with os.fdopen(handed, "wb", closefd=False) as file:
        pickle.dump(observation, file)
    channel.send(Done(value), [handed])
    os.close(handed)


def read_observation(handed: int) -> Observation:
    """What `send_observation` handed over. Closes the file."""
    with os.fdopen(handed, "rb") as file:
        file.seek(0)
        observation = pickle.load(file)
    assert isinstance(observation, Observation)
    return observation
