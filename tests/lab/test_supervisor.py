"""Real labs with stubs for shim and NICs: they work, and no process outlives them.

Every test runs the lab's owner in a separate process, as root and as an ordinary user.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emu.lab.ipc.codec import to_line
from emu.lab.ipc.jobs import Job
from tests.support.iperf3_server import MORE_THAN_IN_FLIGHT
from tests.support.lab_fabrics import clos_spec
from tests.support.running_lab import RunningLab
from tests.support.stub_jobs import Crash, Idle, Prompt, RunCommands, RunStubs
from tests.support.user import ROOT, SECONDS, Ended, User, wait


def _command(job: Job[Any], *words: str) -> list[str]:
    """The command that starts a lab's owner."""
    return [sys.executable, "-m", "tests.support.lab_owner", to_line(job).decode(), *words]


def _run(user: User, spec: str = "", out: Path | None = None, rnic_fails: str = "") -> Ended:
    """The result of a run that ends by itself."""
    job = RunStubs(spec or clos_spec(), str(out or user.home), rnic_fails=rnic_fails)
    return wait(user.start(*_command(job)))


def _idle(user: User, *words: str) -> RunningLab:
    """A lab that runs until it is ended."""
    command = _command(Idle(clos_spec(), str(user.home)), *words)
    return RunningLab(user, *command, says="idle")


def test_a_run_returns_the_measurements_of_its_processes(user: User) -> None:
    """The output shows progress first."""
    code, out, err = _run(user)
    assert (code, err) == (0, "")
    *progress, result = out.splitlines()
    assert progress == ["building the lab", "hosts: h1 h2 h3 h4"]
    measured = json.loads(result)
    cpu = measured.pop("cpu")
    assert set(cpu["seconds"]) == {"nics", "other", "ovs", "shim", "stolen"}
    for seconds in cpu["seconds"].values():
        assert len(seconds) == len(cpu["time_ns"]) > 0
        assert min(seconds) >= 0
    assert measured == {
        "plane": "ovs",
        "marker": "none",
        "notes": [],
        "streams": [],
        "captures": {"subnet": "False", "shared": "0"},
    }


def test_an_infiniband_lab_has_a_subnet_manager_and_no_bridges(user: User) -> None:
    """Its shim forwards by the tables of the subnet manager."""
    code, out, err = _run(user, clos_spec("ib"))
    assert (code, err) == (0, "")
    result = json.loads(out.splitlines()[-1])
    assert result["plane"] == "shim"
    assert result["captures"]["subnet"] == "True"


def test_the_marker_is_ebpf_if_permitted(user: User) -> None:
    """eBPF shares depths and curves with the shim.

    If eBPF is not permitted, the shim marks, and a note says so.
    """
    code, out, err = _run(user, clos_spec(ecn={"kmin": "50KB"}))
    assert code == 0, err
    result = json.loads(out.splitlines()[-1])
    if result["marker"] == "ebpf":
        assert (result["notes"], result["captures"]["shared"]) == ([], "2")
    else:
        assert (result["marker"], result["captures"]["shared"]) == ("shim", "0")
        assert result["notes"][0].startswith("the shim marks: eBPF cannot be loaded here")


def test_a_spec_that_requires_ebpf_fails_without_it(user: User) -> None:
    """Users who may not load eBPF get exit code 3 with both remedies."""
    code, _, err = _run(user, clos_spec(ecn={"marker": "ebpf"}))
    if code != 0:
        assert code == 3
        assert err.endswith("run as root, or set switches.ecn.marker to auto or shim\n")


@pytest.mark.parametrize("real_shim", [False, True])
def test_ping_and_tcp_cross_the_racks(user: User, real_shim: bool) -> None:
    """Three routers decrement the TTL by three, jumbo frames pass, and TCP has checksums.

    The test runs with bridges as cables, then with the shim.
    """
    output = _outputs(
        user,
        ["h1", "ping", "-c", "1", "-W", "2", "10.0.0.4"],
        ["h1", "ping", "-c", "1", "-W", "2", "-M", "do", "-s", "4172", "10.0.0.4"],
        ["h4", sys.executable, "-m", "tests.support.iperf3_server"],
        ["h1", "iperf3", "--client", "10.0.0.4", *MORE_THAN_IN_FLIGHT, "--json"],
        real_shim=real_shim,
    )
    assert "ttl=61" in output[0]
    assert "1 received" in output[1]
    assert json.loads(output[3])["end"]["sum_received"]["bytes"] > 0


def test_the_kernel_does_not_answer_roce_packets(user: User) -> None:
    """A datagram to UDP 4791 gets no answer. One to another port is refused."""
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
        user,
        ["h1", sys.executable, "-c", send, "4791"],
        ["h1", sys.executable, "-c", send, "4792"],
    )
    assert output == ["TimeoutError\n", "ConnectionRefusedError\n"]


def test_the_udp_source_port_alone_selects_the_spine(user: User) -> None:
    """The source MAC, which holds the transit tag, has no effect."""
    ports = range(0xC000, 0xC010)
    tags = ("06:00:01:00:00:01", "06:00:02:ab:cd:ef")
    traces = [_trace(port, tag) for tag in tags for port in ports]
    actions = [text.splitlines()[-1] for text in _outputs(user, *traces)]
    assert actions[: len(ports)] == actions[len(ports) :]
    ways = {action.removeprefix("Datapath actions: ").rsplit(",", 1)[0] for action in actions}
    assert ways == {
        "set(eth(dst=02:01:00:01:00:01)),set(ipv4(ttl=63))",
        "set(eth(dst=02:01:00:02:00:01)),set(ipv4(ttl=63))",
    }


def test_a_failure_in_a_process_of_the_lab_reaches_the_user(user: User) -> None:
    """The user sees its text, with the exit code of a failed run."""
    code, _, err = _run(user, rnic_fails="h1: the NIC is on fire")
    assert (code, err) == (4, "h1: the NIC is on fire\n")


def test_a_bug_in_the_lab_is_reported(user: User) -> None:
    code, _, err = wait(user.start(*_command(Crash(str(user.home)))))
    assert code == 4
    assert "internal error: ZeroDivisionError: on purpose" in err


def test_an_owner_may_leave_as_soon_as_it_has_the_result() -> None:
    """The supervisor has noticed that before it ends the processes, and still ends them."""
    script = (
        "import emu.lab.supervisor as module\n"
        "from emu.lab.ipc.channel import channel_pair\n"
        "from emu.lab.ipc.messages import Done\n"
        "channel, owner = channel_pair()\n"
        "supervisor = module.Supervisor(channel)\n"
        "send = channel.send\n"
        "def send_and_lose_the_owner(message, files):\n"
        "    send(message, files)\n"
        "    owner.close()\n"
        "    supervisor.wait_for_the_end()\n"
        "channel.send = send_and_lose_the_owner\n"
        "module.kill_fast = lambda pids: print('ended')\n"
        "supervisor.end_job(Done(), [])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_a_killed_host_shell_ends_the_lab(user: User) -> None:
    """The exit code is 4, with one clear line, and nothing is left."""
    lab = _idle(user)
    lab.kill(("bash", "mininet:h3"))
    assert lab.end()[::2] == (4, "the shell of h3 died (signal 9)\n")


def test_ctrl_c_on_the_labs_terminal_ends_its_job(user: User) -> None:
    """Every process on the terminal gets the signal. The lab's job ends first, then the rest."""
    lab = _idle(user, "terminal")
    os.killpg(lab.owner.pid, signal.SIGINT)
    assert lab.end() == (130, "", "")


def test_the_end_of_one_lab_does_not_affect_another(user: User) -> None:
    """Both labs have the same names and addresses."""
    one, two = _idle(user), _idle(user)
    one.owner.send_signal(signal.SIGINT)
    assert wait(one.owner) == (130, "", "")
    assert two.owner.poll() is None
    two.owner.send_signal(signal.SIGINT)
    assert two.end() == (130, "", "")


def test_a_machine_without_namespaces_gets_a_remedy(user: User) -> None:
    """The exit code is 3. The messages of `unshare` are not shown."""
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    code, _, err = _run(replace(user, prefix=(*user.prefix, *inside)))
    assert code == 3
    remedy = "sysctl -w user.max_net_namespaces=15000"
    assert err == f"this machine does not let you make namespaces; {remedy}\n"


def test_results_in_the_private_folder_are_refused(user: User) -> None:
    """A lab has a private /run, so files written there would be lost."""
    code, _, err = _run(user, out=Path("/run/results"))
    assert code == 2
    assert "choose another folder" in err


def test_mininets_prompt_runs_in_a_lab(user: User) -> None:
    """Host names stand for addresses, and leaving the prompt ends the lab."""
    command = _command(Prompt(clos_spec(), str(user.home)), "terminal")
    process = user.start(*command)
    _, said = process.communicate(b"net\nh1 ping -c 1 h4\nexit\n", timeout=SECONDS)
    assert process.returncode == 0
    assert b"h1 h1-eth0:leaf1-eth1" in said
    assert b"1 received" in said
    assert not list(user.home.iterdir())


def _outputs(user: User, *commands: list[str], real_shim: bool = False) -> list[str]:
    words = tuple(map(tuple, commands))
    job = RunCommands(clos_spec(), str(user.home), words, real_shim=real_shim)
    code, out, err = wait(user.start(*_command(job)))
    assert code == 0, err
    output: list[str] = json.loads(out.splitlines()[-1])["output"]
    return output


def _trace(udp_src: int, eth_src: str) -> list[str]:
    packet = (
        f"in_port=1,udp,nw_src=10.0.0.1,nw_dst=10.0.0.4,nw_ttl=64,udp_src={udp_src},"
        f"udp_dst=4791,eth_src={eth_src},eth_dst=02:01:00:03:00:01"
    )
    return ["lab", "ovs-appctl", "ofproto/trace", "leaf1", packet]
