"""Hands an observation from the shim or the NIC process to the lab, as an open file."""

from __future__ import annotations

import os
import pickle

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.measure.observation import Observation


def send_observation(channel: Channel, observation: Observation, answer: Message) -> None:
    """Sends a process's last answer, and with it the observation as an open file."""
    fd = os.memfd_create("observation")
    with os.fdopen(fd, "wb", closefd=False) as file:
        pickle.dump(observation, file)
    channel.send(answer, [fd])
    os.close(fd)


def read_observation(fd: int) -> Observation:
    """The observation that `send_observation` wrote. Closes the file."""
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        observation = pickle.load(file)
    assert isinstance(observation, Observation)
    return observation
