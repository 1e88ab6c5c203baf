"""Keeps the NIC's files of hosts up to date while programs there may read them."""

from __future__ import annotations

from emu.daemon.messages import ShowRdmaSysfs
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.ipc.messages import Done
from emu.spec.diagnostic import unknown_name


def answer(lab: ServedLab, query: ShowRdmaSysfs) -> Answer:
    for host in query.hosts:
        if host not in lab.topology.host:
            raise UsageError(unknown_name("host", host, list(lab.topology.host)))
    return Done(), [lab.rdma_sysfs.keep(query.hosts)]
