"""The `management:` section: an out-of-band management network of labs that stay up.

    management: on                    network, firewall and exporter, with the defaults
    management:
      exporter: {port: 9100}
      firewall: on
      allow:
        - {from: mgmt, to: all, service: tcp/22}
        - {from: all, to: mgmt, service: udp/514}

Every host and switch has an interface there, and so has the place of collectors, `mgmt`. What
`allow` does not list is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from emu.spec.base import Model
from emu.spec.management_names import COLLECTOR
from emu.spec.notes import note
from emu.spec.quantities import OFF, OFF_SCHEMA, OFF_WRITTEN, Hosts, Integer

ALL = "all"
"""In `from` and `to`: every host and switch, without the collector."""
SYSLOG_PORT = 514
MOST_NODES = 1022
"""Hosts and switches: a bridge of the kernel has 1,023 ports, and one is the collector's."""

_SERVICE = re.compile(r"icmp|(tcp|udp)/([1-9][0-9]{0,4})")
_HIGHEST_PORT = 65535


def _service(text: str) -> str:
    found = _SERVICE.fullmatch(text)
    if found is None or int(found[2] or 1) > _HIGHEST_PORT:
        raise ValueError(
            f"{text!r:.40} is not understood; write icmp, or a protocol and a port from 1 to "
            f"{_HIGHEST_PORT}, like tcp/22 or udp/161"
        )
    return text


Service = Annotated[str, AfterValidator(_service)]


@dataclass(frozen=True, order=True)
class Cell:
    """A node may begin to talk to another one, by one service."""

    source: str
    target: str
    service: str


class Allowed(Model):
    """Nodes that may begin to talk to others. Answers are allowed, too."""

    from_: Hosts = Field(
        alias="from",
        description="Hosts, switches, mgmt (the collector), or all (every host and switch).",
    )
    to: Hosts = Field(description="The same.")
    service: Service = Field(
        description="icmp, or a protocol and its port, e.g. tcp/22 or udp/161.",
    )


class Exporter(Model):
    """A Prometheus exporter on every host and switch, as its agent would be."""

    port: Integer = Field(
        default=9100,
        ge=1,
        le=_HIGHEST_PORT,
        description="TCP port of its HTTP server, on the interface mgmt0.",
        json_schema_extra=note(unit="a port", why="the port of Prometheus' own node exporter"),
    )


_DEFAULT_ALLOW = tuple(
    Allowed.model_validate({"from": source, "to": target, "service": service})
    for source, target, service in (
        (COLLECTOR, ALL, "icmp"),
        (COLLECTOR, ALL, "tcp/22"),
        (ALL, COLLECTOR, "icmp"),
        (ALL, COLLECTOR, "udp/514"),
    )
)


class Management(Model):
    """The management network, out of band: nothing of it is in the fabric."""

    exporter: Annotated[Exporter | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=Exporter(),
        description="Whether hosts and switches export their counters to Prometheus; off for none.",
        json_schema_extra=note(why="counters are what a management network is read for most"),
    )
    syslog: bool = Field(
        default=False,
        description="Whether hosts and switches report links, storms, losses and errors to the "
        "collector, by syslog (RFC 5424) over UDP port 514.",
        json_schema_extra=note(why="nobody reads it unless a collector listens"),
    )
    firewall: bool = Field(
        default=True,
        description="Whether nftables drops what `allow` does not list.",
        json_schema_extra=note(why="nothing should be reachable that nobody needs"),
    )
    allow: tuple[Allowed, ...] = Field(
        default=_DEFAULT_ALLOW,
        description="Who may begin to talk to whom. What the exporter and syslog need is "
        "always allowed.",
        json_schema_extra=note(
            why="the collector reads (ping, SSH), and nodes report (ping, syslog)"
        ),
    )

    def cells(self, nodes: tuple[str, ...]) -> frozenset[Cell]:
        """Every pair of nodes that is allowed, with those of the exporter and of syslog. `nodes`:
        all hosts and switches."""
        return frozenset(self._cells(nodes))

    def _cells(self, nodes: tuple[str, ...]) -> Iterator[Cell]:
        for entry in self.allow:
            for source in _named(entry.from_, nodes):
                for target in _named(entry.to, nodes):
                    if source != target:
                        yield Cell(source, target, entry.service)
        if self.syslog:
            yield from (Cell(node, COLLECTOR, f"udp/{SYSLOG_PORT}") for node in nodes)
        if self.exporter is not None:
            service = f"tcp/{self.exporter.port}"
            yield from (Cell(COLLECTOR, node, service) for node in nodes)


def _named(words: tuple[str, ...], nodes: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if word == ALL and ALL not in nodes:
            yield from nodes
        else:
            yield word
