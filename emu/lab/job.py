"""What the shim and the NIC process have in common: their observation is their result."""

from __future__ import annotations

import os
import pickle

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.measure.observation import Observation
from emu.spec.scenario import Spec


def is_rerouted(spec: Spec, *, interactive: bool) -> bool:
    """Whether a process of the lab routes again when links change: InfiniBand's subnet manager, and
    on Ethernet the lab (`emu.lab.rerouting`), where users may break links at any time."""
    return spec.fabric_kind.has_subnet_manager or interactive


def send_observation(channel: Channel, observation: Observation, answer: Message) -> None:
    """Ends the work of a process: its answer, and the observation as an open file."""
    handed = os.memfd_create("observation")
    with os.fdopen(handed, "wb", closefd=False) as file:
        pickle.dump(observation, file)
    channel.send(answer, [handed])
    os.close(handed)


def read_observation(handed: int) -> Observation:
    """What `send_observation` handed over. Closes the file."""
    with os.fdopen(handed, "rb") as file:
        file.seek(0)
        observation = pickle.load(file)
    assert isinstance(observation, Observation)
    return observation
