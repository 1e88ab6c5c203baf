"""Real labs, with stubs for shim and NICs: they work, and nothing outlives them.

Every test runs the lab's owner as a process of its own, as root and as an
ordinary user (as far as the tests' own user may).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest

from emu.errors import HostError
from emu.lab.probe import require
from tests.lab.fabrics import clos_spec

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SECONDS = 20.0


@dataclass(frozen=True)
class Owner:
    """Who owns a lab: the words before its command, and its home."""

    prefix: tuple[str, ...]
    home: Path

    def start(self, job: str, *words: str, spec: str = "", **options: Any) -> subprocess.Popen[str]:
        request = {
            "job": job,
            "spec": spec or clos_spec(),
            "out": str(self.home),
            "options": options,
        }
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "tests.lab.owner", json.dumps(request), *words],
            cwd=ROOT,
            env=os.environ | {"HOME": str(self.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, job: str, spec: str = "", **options: Any) -> tuple[int, str, str]:
        """Exit code, output and errors of a lab that ends by itself."""
        process = self.start(job, spec=spec, **options)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err


@cache
def _lacking() -> str:
    """What this machine lacks for the labs of these tests."""
    try:
        require("namespaces", "veth", "mininet", "Open vSwitch", "OpenSM", "ibsim")
    except HostError as error:
        return f"needs {error}"
    return ""


@pytest.fixture(params=["root", "user"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Owner:
    """Root, then an ordinary user; root is left out when the tests are not root."""
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("needs root")
    if lacking := _lacking():
        pytest.skip(lacking)
    if request.param == "root" or not is_root:
        return Owner((), tmp_path)
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    shutil.chown(tmp_path, NOBODY, NOBODY)
    return Owner(("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"), tmp_path)


def _outside() -> tuple[frozenset[str], frozenset[str]]:
    """What a lab could leave behind: interfaces, and mounts."""
    interfaces = frozenset(entry.name for entry in Path("/sys/class/net").iterdir())
    return interfaces, frozenset(Path("/proc/self/mounts").read_text().splitlines())


def _children(pid: int) -> Iterator[int]:
    """A process's descendants."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _children(int(child))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


class RunningLab:
    """A lab that waits to be ended, and everything of it that could outlive it."""

    def __init__(self, owner: Owner, *words: str) -> None:
        self._before = _outside()
        self.owner = owner.start("idle", *words)
        assert self.owner.stdout is not None
        assert _line(self.owner.stdout) == "building the lab"
        _line(self.owner.stdout)
        pids = [self.owner.pid, *_children(self.owner.pid)]
        self.pids = {_command(pid): pid for pid in pids}
        self._files = {pid: os.pidfd_open(pid) for pid in pids}

    def kill(self, program: str, word: str) -> None:
        """Kills the one process of this program whose command has this word."""
        (pid,) = [
            pid
            for command, pid in self.pids.items()
            if command.startswith(program) and word in command
        ]
        os.kill(pid, signal.SIGKILL)

    def end(self) -> tuple[int, str]:
        """The owner's exit code and errors; fails when anything of the lab is left."""
        _, errors = self.owner.communicate(timeout=SECONDS)
        for pid, file in self._files.items():
            assert select.select([file], [], [], SECONDS)[0], f"process {pid} is left"
            os.close(file)
        assert _outside() == self._before
        return self.owner.returncode, errors


def _line(stream: IO[str]) -> str:
    assert select.select([stream], [], [], SECONDS)[0], "the lab says nothing"
    return stream.readline().strip()


def test_a_run_asks_shim_and_nics_and_returns_what_they_measured(owner: Owner) -> None:
    """The whole conversation, with progress on the way."""
    code, out, err = owner.run("run")
    assert (code, err) == (0, "")
    *progress, result = out.splitlines()
    assert progress == ["building the lab", "hosts: h1 h2 h3 h4"]
    assert json.loads(result) == {
        "plane": "ovs",
        "marker": "none",
        "notes": [],
        "captures": {"subnet": False, "boards": 0},
    }


def test_an_infiniband_lab_has_a_subnet_manager_and_no_bridges(owner: Owner) -> None:
    """Its shim forwards, by the tables of the subnet manager."""
    code, out, err = owner.run("run", clos_spec("ib"))
    assert (code, err) == (0, "")
    result = json.loads(out.splitlines()[-1])
    assert result["plane"] == "shim"
    assert result["captures"]["subnet"]


def test_the_marker_is_ebpf_where_it_may_be_loaded(owner: Owner) -> None:
    """The shim gets the board to write its depths on; elsewhere it marks, and the run says so."""
    code, out, err = owner.run("run", clos_spec(ecn={"kmin": "50KB"}))
    assert code == 0, err
    result = json.loads(out.splitlines()[-1])
    if result["marker"] == "ebpf":
        assert (result["notes"], result["captures"]["boards"]) == ([], 1)
    else:
        assert (result["marker"], result["captures"]["boards"]) == ("shim", 0)
        assert result["notes"][0].startswith("the shim marks: eBPF may not be loaded here")


def test_a_spec_that_insists_on_ebpf_needs_it(owner: Owner) -> None:
    """Exit code 3 for those who may not load it, with both remedies."""
    code, _, err = owner.run("run", clos_spec(ecn={"marker": "ebpf"}))
    if code != 0:
        assert code == 3
        assert err.endswith("run as root, or set switches.ecn.marker to auto or shim\n")


@pytest.mark.parametrize("job", ["commands", "whole"])
def test_ping_and_tcp_cross_the_racks(owner: Owner, job: str) -> None:
    """Three routers on the way take three from the TTL; jumbo frames pass; TCP has checksums.

    First with bridges for cables, then with the shim.
    """
    output = _outputs(
        owner,
        ["h1", "ping", "-c", "1", "-W", "2", "10.0.0.4"],
        ["h1", "ping", "-c", "1", "-W", "2", "-M", "do", "-s", "4172", "10.0.0.4"],
        ["h4", "iperf3", "--server", "--one-off", "--daemon"],
        ["h1", "iperf3", "--client", "10.0.0.4", "--bytes", "1M", "--json"],
        job=job,
    )
    assert "ttl=61" in output[0]
    assert "1 received" in output[1]
    assert json.loads(output[3])["end"]["sum_received"]["bytes"] > 0


def test_the_kernel_says_nothing_about_roce_packets(owner: Owner) -> None:
    """A datagram to UDP 4791 is swallowed; to another port it is refused."""
    send = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.settimeout(0.3)\n"
        "s.connect(('10.0.0.4', int(sys.argv[1])))\n"
        "s.send(b'x')\n"
        "try:\n"
        "    s.recv(1)\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    output = _outputs(
        owner,
        ["h1", sys.executable, "-c", send, "4791"],
        ["h1", sys.executable, "-c", send, "4792"],
    )
    assert output == ["TimeoutError\n", "ConnectionRefusedError\n"]


def test_flows_spread_over_the_spines_and_the_transit_tag_does_not_matter(owner: Owner) -> None:
    """The UDP source port picks the bucket; the source MAC never does."""
    ports = range(0xC000, 0xC010)
    tags = ("06:00:01:00:00:01", "06:00:02:ab:cd:ef")
    traces = [_trace(port, tag) for tag in tags for port in ports]
    actions = [text.splitlines()[-1] for text in _outputs(owner, *traces)]
    assert actions[: len(ports)] == actions[len(ports) :]
    ways = {action.removeprefix("Datapath actions: ").rsplit(",", 1)[0] for action in actions}
    assert ways == {
        "set(eth(dst=02:01:00:01:00:01)),set(ipv4(ttl=63))",
        "set(eth(dst=02:01:00:02:00:01)),set(ipv4(ttl=63))",
    }


def test_a_failure_in_a_process_of_the_lab_reaches_the_user(owner: Owner) -> None:
    """In its own words, with the exit code of a failed run."""
    code, _, err = owner.run("run", rnic_fails="h1: the NIC is on fire")
    assert (code, err) == (4, "h1: the NIC is on fire\n")


def test_a_bug_in_the_lab_is_an_error_too(owner: Owner) -> None:
    code, _, err = owner.run("crash")
    assert code == 4
    assert "internal error: ZeroDivisionError: on purpose" in err


@pytest.mark.parametrize(
    ("victim", "name"),
    [
        ((sys.executable, "stub_shim"), "the shim"),
        ((sys.executable, "stub_rnic"), "the NIC process"),
        (("ovs-vswitchd", "--detach"), "ovs-vswitchd"),
        (("ovsdb-server", "--detach"), "ovsdb-server"),
        (("bash", "mininet:h3"), "the shell of h3"),
    ],
)
def test_when_a_process_is_killed_all_end_and_the_lab_says_who(
    owner: Owner, victim: tuple[str, str], name: str
) -> None:
    """Exit code 4, one clear line, and nothing left."""
    lab = RunningLab(owner)
    lab.kill(*victim)
    assert lab.end() == (4, f"{name} died (signal 9)\n")


@pytest.mark.parametrize("victim", ["unshare", sys.executable])
def test_when_the_first_process_is_killed_all_end(owner: Owner, victim: str) -> None:
    """Nobody is left inside to say so; the owner does. The same for its parent, `unshare`."""
    lab = RunningLab(owner)
    lab.kill(victim, "tests.lab.stub_inside")
    assert lab.end() == (4, "the lab's first process died\n")


def test_when_the_owner_is_killed_all_end(owner: Owner) -> None:
    """The kernel sees to it."""
    lab = RunningLab(owner)
    lab.owner.kill()
    assert lab.end()[0] == -signal.SIGKILL


def test_ctrl_c_ends_all(owner: Owner) -> None:
    """With the shell's exit code for it, and without a word."""
    lab = RunningLab(owner)
    lab.owner.send_signal(signal.SIGINT)
    assert lab.end() == (130, "")


def test_ctrl_c_in_a_lab_that_has_the_terminal_is_for_the_lab(owner: Owner) -> None:
    """Everybody on the terminal gets the signal; the lab's job ends by it, and then the rest."""
    lab = RunningLab(owner, "terminal")
    os.killpg(lab.owner.pid, signal.SIGINT)
    assert lab.end() == (130, "")


def test_two_labs_at_once(owner: Owner) -> None:
    """Same names, same addresses, no collision; one ends and the other goes on."""
    one, two = RunningLab(owner), RunningLab(owner)
    one.owner.send_signal(signal.SIGINT)
    assert one.end() == (130, "")
    assert two.owner.poll() is None
    two.owner.send_signal(signal.SIGINT)
    assert two.end() == (130, "")


def test_a_machine_without_namespaces_is_told_so(owner: Owner) -> None:
    """With exit code 3 and what to do; `unshare`'s own words are not for the user."""
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    code, _, err = Owner((*owner.prefix, *inside), owner.home).run("run")
    assert code == 3
    assert err.startswith("this machine does not let you make namespaces; run as root, or:")


def test_a_missing_program_is_named_with_its_package(owner: Owner, tmp_path: Path) -> None:
    """With exit code 3, though it shows only when the lab is half built."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/usr/sbin"):
        for program in Path(folder).iterdir():
            if program.name != "ovsdb-tool" and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    code, _, err = Owner((*owner.prefix, "env", f"PATH={programs}"), owner.home).run("run")
    assert (code, err) == (
        3,
        "the program ovsdb-tool is missing; sudo apt-get install openvswitch-switch\n",
    )


def test_results_in_the_private_folder_are_refused(owner: Owner) -> None:
    """A lab's /run is not the user's: what it writes there would be lost."""
    process = Owner(owner.prefix, Path("/run/results")).start("run")
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "choose another folder" in errors


def test_mininets_prompt(owner: Owner) -> None:
    """Names of hosts stand for their addresses; leaving the prompt ends the lab."""
    process = owner.start("prompt", "terminal")
    _, said = process.communicate("net\nh1 ping -c 1 h4\nexit\n", timeout=SECONDS)
    assert process.returncode == 0
    assert "h1 h1-eth0:leaf1-eth1" in said
    assert "1 received" in said
    assert not list(owner.home.iterdir())


def _outputs(owner: Owner, *commands: list[str], job: str = "commands") -> list[str]:
    code, out, err = owner.run(job, commands=commands, slowdown=100)
    assert code == 0, err
    output: list[str] = json.loads(out.splitlines()[-1])["output"]
    return output


def _trace(udp_src: int, eth_src: str) -> list[str]:
    packet = (
        f"in_port=1,udp,nw_src=10.0.0.1,nw_dst=10.0.0.4,nw_ttl=64,udp_src={udp_src},"
        f"udp_dst=4791,eth_src={eth_src},eth_dst=02:01:00:03:00:01"
    )
    return ["lab", "ovs-appctl", "ofproto/trace", "leaf1", packet]
