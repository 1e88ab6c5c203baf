"""All settings of a switch, read from its configuration for the ports that have cables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from emu.imports.report import Report
from emu.sonic.config_db import Config
from emu.sonic.egress import Schedule, WredCurve, read_curves, read_schedule
from emu.sonic.lossy_queues import LossyLimit, read_lossy_limit
from emu.sonic.pfc_profiles import PortPfc, read_pfc
from emu.sonic.pools import note_lossy_groups, read_pool
from emu.sonic.qos_maps import PortClasses, note_pfc_maps, note_priority_groups, read_classes
from emu.sonic.watchdog import WatchdogSettings, read_watchdog
from emu.units import write_size


@dataclass(frozen=True)
class PortSettings:
    """The settings of one port."""

    classes: PortClasses
    pfc: PortPfc | None
    curves: dict[int, WredCurve]
    """The curve of each queue that marks."""

    @property
    def lossless(self) -> tuple[int, ...]:
        """The lossless priorities."""
        return self.pfc.priorities if self.pfc else ()

    @property
    def used_queues(self) -> frozenset[int]:
        return frozenset(self.classes.queue)

    @property
    def lossless_queues(self) -> set[int]:
        return {self.classes.queue[priority] for priority in self.lossless}


@dataclass(frozen=True)
class SwitchSettings:
    """The settings of one switch."""

    ports: dict[str, PortSettings]
    """By SONiC's name of the port."""
    pool_bytes: int
    reserved_bytes: int
    """For each port and priority."""
    lossy: LossyLimit
    schedule: Schedule
    watchdog: WatchdogSettings | None


def read_switch(config: Config, ports: Iterable[str], report: Report) -> SwitchSettings:
    """The settings of a switch. `ports`: those that have a cable."""
    own = {port: _read_port(config, port, report) for port in ports}
    profiles = [settings.pfc for settings in own.values() if settings.pfc]
    headroom = sum(len(pfc.priorities) * (pfc.headroom_bytes or 0) for pfc in profiles)
    pool_bytes = read_pool(config, list(own), headroom, report)
    own = _within(pool_bytes, config, own, report)
    return SwitchSettings(
        own,
        pool_bytes=pool_bytes,
        reserved_bytes=_reserved(config, own, report),
        lossy=read_lossy_limit(
            config,
            {port: settings.classes for port, settings in own.items()},
            {port: settings.lossless_queues for port, settings in own.items()},
            report,
        ),
        schedule=read_schedule(
            config, {port: settings.used_queues for port, settings in own.items()}, report
        ),
        watchdog=read_watchdog(config, list(own), report),
    )


def _read_port(config: Config, port: str, report: Report) -> PortSettings:
    classes = read_classes(config, port, report)
    pfc = read_pfc(config, port, report)
    lossless = pfc.priorities if pfc else ()
    note_priority_groups(config, port, lossless, report)
    note_pfc_maps(config, port, lossless, classes, report)
    note_lossy_groups(config, port, report)
    curves = read_curves(config, port, frozenset(classes.queue), report)
    return PortSettings(classes, pfc, curves)


def _within(
    pool_bytes: int, config: Config, ports: dict[str, PortSettings], report: Report
) -> dict[str, PortSettings]:
    """The ports with static thresholds that all fit into the pool together, as emu wants it."""
    static = {port: own.pfc for port, own in ports.items() if own.pfc and own.pfc.xoff_bytes}
    count = sum(len(pfc.priorities) for pfc in static.values())
    if sum(len(pfc.priorities) * (pfc.xoff_bytes or 0) for pfc in static.values()) <= pool_bytes:
        return ports
    share = pool_bytes // count
    for port, pfc in static.items():
        for priority in pfc.priorities if (pfc.xoff_bytes or 0) > share else ():
            row = config.at("BUFFER_PG", port, str(priority))
            if row is not None:
                text = "static thresholds together are more than the pool, so xoff is "
                report.approximated(row.row("profile"), f"{text}{write_size(share)}")
    changed = {
        port: replace(ports[port], pfc=replace(pfc, xoff_bytes=min(pfc.xoff_bytes or 0, share)))
        for port, pfc in static.items()
    }
    return {port: changed.get(port, own) for port, own in ports.items()}


def _reserved(config: Config, ports: dict[str, PortSettings], report: Report) -> int:
    """The reserved bytes: emu has one number for all ports and priorities, the largest."""
    largest = max((own.pfc.reserved_bytes for own in ports.values() if own.pfc), default=0)
    for port, own in ports.items():
        for priority in own.lossless if own.pfc else ():
            row = config.at("BUFFER_PG", port, str(priority))
            if row is not None and own.pfc and own.pfc.reserved_bytes != largest:
                report.approximated(
                    row.row("profile"),
                    f"switches.reserved is that of another port, {write_size(largest)}",
                )
    return largest
