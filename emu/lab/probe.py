"""Probes: whether this machine has each program and kernel feature that a lab can use.

A probe tries the feature in a scratch namespace, as a lab would, and describes what is missing. If
a lab can do without the feature, the probe names the substitute; else the feature is required.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.errors import HostError
from emu.lab import emulated_time, tun
from emu.lab.command import PACKAGES, environment, is_installed
from emu.lab.frr import daemons as frr
from emu.lab.marker.red import Red
from emu.lab.namespace import namespaces_remedy, unshare_command
from emu.lab.ovs import datapath_type
from emu.privilege import is_root, remedy_for_me


@dataclass(frozen=True)
class Probe:
    """One program or feature that a lab can use."""

    name: str
    needed_for: str
    find_missing: Callable[[], str]
    """Returns what is missing; empty if nothing is."""
    instead: str = ""
    """The substitute that a lab uses without it. Empty: it is required."""
    remedy: str | Callable[[], str] = ""
    """The command that installs or enables it, or a function that returns the command for this
    machine."""

    def user_remedy(self) -> str:
        """The remedy for the present user."""
        return remedy_for_me(self.remedy if isinstance(self.remedy, str) else self.remedy())


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe."""

    name: str
    needed_for: str
    present: bool
    missing: str
    instead: str
    remedy: str

    @property
    def required(self) -> bool:
        return not self.instead


def install(*packages: str) -> str:
    """The command that installs Debian packages."""
    return f"sudo apt-get install {' '.join(packages)}"


def _programs(*programs: str) -> Callable[[], str]:
    def find_missing() -> str:
        absent = [program for program in programs if not is_installed(program)]
        return f"{', '.join(absent)} not installed" if absent else ""

    return find_missing


def _packaged(name: str, needed_for: str, *programs: str, instead: str = "") -> Probe:
    packages = dict.fromkeys(PACKAGES[program] for program in programs)
    return Probe(name, needed_for, _programs(*programs), instead, install(*packages))


def _module(name: str) -> Callable[[], str]:
    def find_missing() -> str:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return str(error)
        return ""

    return find_missing


def _in_scratch(*command: str) -> Callable[[], str]:
    """A probe that runs a command in namespaces like a lab's."""

    def find_missing() -> str:
        return _scratch(command)

    return find_missing


def _scratch(command: Sequence[str]) -> str:
    scratch = unshare_command(root=os.geteuid() == 0)
    try:
        done = subprocess.run(
            [*scratch, *command], capture_output=True, text=True, env=environment()
        )
    except FileNotFoundError as error:
        return f"{error.filename} not installed"
    if done.returncode == 0:
        return ""
    output = (done.stderr or done.stdout).strip().splitlines()
    return output[-1] if output else f"exit code {done.returncode}"


_FIREWALL = (
    "add table inet scratch; add chain inet scratch input; "
    "add rule inet scratch input ct state established accept; "
    "add table bridge scratch; add chain bridge scratch forward; "
    "add rule bridge scratch forward iifname lo ip saddr 10.0.0.1 accept",
)
"""What the management network's firewalls are made of."""


def _tap_devices() -> str:
    return "" if datapath_type() == "netdev" else "/dev/net/tun cannot be opened"


def _kernel_datapath() -> str:
    missing = _scratch(["ovs-dpctl", "add-dp", "scratch"])
    return missing and f"this kernel has no openvswitch ({missing})"


def _red() -> str:
    """Adds the qdiscs of a port to the loopback interface."""
    port = Red.nearest(
        "lo", kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01, rate_bps=10**8, limit_bytes=10**6
    )
    for module, line in (("sch_tbf", port.bucket("root")), ("sch_red", port.queue("root"))):
        if missing := _scratch(["tc", *line.split()]):
            return f"this kernel has no qdisc {module} ({missing})"
    return ""


def _ebpf_remedy() -> str:
    """The remedy for the marker: tools that are missing, and the right to load eBPF."""
    tools = [] if is_installed("clang") else ["clang"]
    tools += [] if Path("/usr/include/bpf/bpf_helpers.h").exists() else ["libbpf-dev"]
    remedies = [install(*tools)] if tools else []
    if not is_root():
        remedies.append(
            "run the lab as root (`sudo emu ...`), only root may load eBPF; this is optional, "
            "because without eBPF the shim marks the same packets"
        )
    elif not tools:
        remedies.append("if this is a container, start it with --privileged")
    return "; then ".join(remedies)


PROBES = (
    Probe(
        "namespaces",
        "every lab",
        _in_scratch("true"),
        remedy=namespaces_remedy,
    ),
    Probe(
        "veth",
        "every lab",
        _in_scratch(sys.executable, "-m", "emu.lab.trial", "veth"),
        remedy="sudo modprobe veth",
    ),
    Probe(
        "mininet",
        "every lab",
        lambda: _programs("mnexec", "ifconfig", "bash")() or _module("mininet.net")(),
        remedy=f"{install('mininet')}; the virtual environment needs --system-site-packages",
    ),
    Probe(
        "emu._core",
        "every run",
        _module("emu._core"),
        remedy="make",
    ),
    _packaged(
        "Open vSwitch",
        "fabric: roce with plane: ovs",
        *("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"),
    ),
    Probe(
        "tap devices",
        "Open vSwitch's netdev datapath",
        _tap_devices,
        instead="its dummy datapath, which forwards the same packets",
        remedy="sudo chmod 666 /dev/net/tun",
    ),
    Probe(
        "TUN devices",
        "IP over InfiniBand",
        _in_scratch(sys.executable, "-m", "emu.lab.trial", "ib0"),
        instead="hosts without ib0: only RDMA",
        remedy=tun.REMEDY,
    ),
    Probe(
        "eBPF marker",
        "ecn with marker: ebpf",
        _in_scratch(sys.executable, "-m", "emu.lab.marker.trial"),
        instead="the shim marks",
        remedy=_ebpf_remedy,
    ),
    Probe(
        "kernel RED",
        "ecn with marker: red",
        _red,
        instead="eBPF or the shim marks",
        remedy="sudo modprobe sch_red sch_tbf, or a kernel that has them, as Debian's does; "
        "or set switches.ecn.marker to auto",
    ),
    Probe(
        "kernel datapath",
        "ecn with marker: red",
        _kernel_datapath,
        instead="Open vSwitch forwards in userspace",
        remedy="sudo modprobe openvswitch, or a kernel that has it, as Debian's does; "
        "or set switches.ecn.marker to auto",
    ),
    _packaged("OpenSM", "fabric: ib", "opensm"),
    _packaged("ibsim", "fabric: ib", "ibsim"),
    Probe(
        "FRR",
        "control_plane: bgp",
        frr.why_missing,
        instead="routes that an earlier run has recorded (recorded_routes), or control_plane: "
        "static",
        remedy=install("frr"),
    ),
    Probe(
        "nftables",
        "management with firewall: on",
        _in_scratch("nft", *_FIREWALL),
        instead="management: {firewall: off}",
        remedy=f"{install('nftables')}, and a kernel that has it, as Debian's does",
    ),
    _packaged("iproute2", "emu shell", "ip", "tc", instead="any other program on the hosts"),
    _packaged("ping", "emu shell", "ping", instead="any other program on the hosts"),
    _packaged("iperf3", "emu shell", "iperf3", instead="any other program on the hosts"),
    Probe(
        "libfaketime",
        "emu exec --emulated",
        emulated_time.why_missing,
        instead="real time: multiply rates by the slowdown yourself",
        remedy=install("libfaketime"),
    ),
    _packaged("Open MPI", "emu mpirun", "mpirun", instead="any other program on the hosts"),
    _packaged("tshark", "reading captures", "tshark", instead="emu inspect"),
)


def run_probe(probe: Probe) -> ProbeResult:
    """Runs one probe."""
    missing = probe.find_missing()
    return ProbeResult(
        probe.name, probe.needed_for, not missing, missing, probe.instead, probe.user_remedy()
    )


def run_probes() -> list[ProbeResult]:
    """Runs all probes."""
    return [run_probe(probe) for probe in PROBES]


def require(*names: str) -> None:
    """Raises HostError with a remedy if one of these is missing."""
    for probe in PROBES:
        if probe.name in names and (missing := probe.find_missing()):
            raise HostError(f"{probe.name}: {missing}", remedy=probe.user_remedy())
