"""Programs on the exact clock live in the fabric's time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from emu.daemon.client import LabClient
from emu.daemon.messages import GetStatus
from emu.lab.ipc.lab_time import ContinueTime, PauseTime
from tests.support.background_lab import at_home, lab_up, status_of
from tests.support.exact_lab import emu, time_of
from tests.support.user import User, wait
from tests.support.verbs_programs import ProgramsLab
from tests.support.waiting import eventually

MS = 1_000_000
PS_A_MS = 10**9
INTERRUPTED, CHANGED, TIMED_OUT = 4, 11, 110
"""EINTR, EAGAIN, ETIMEDOUT."""
SPEC = """
name: slow
topology: {{kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2,
  links: {{host: {{rate: {rate}, length: 5m}}, fabric: {{rate: {rate}, length: 5m}}}}}}
hosts: {{cpu: {cpu}}}
traffic: [{{name: other, pattern: pair, from: h1, to: h2, op: write, size: 1MB}}]
"""
"""At low rates a second has few packets."""
WAITS = {
    "poll": (0, 0, 2500 * MS),
    "poll-at-once": (0, 0, 0),
    "ppoll": (0, 0, 2000 * MS),
    "select": (0, 0, 3500 * MS),
    "pselect": (0, 0, 2000 * MS),
    "epoll_wait": (0, 0, 1200 * MS),
    "epoll_pwait2": (0, 0, 2000 * MS),
    "select-ready": (1, 0, 0),
    "epoll-ready": (1, 0, 0),
    "sem_timedwait": (-1, TIMED_OUT, 1000 * MS),
    "sem_timedwait-posted": (0, 0, 300 * MS),
    "cond_timedwait": (TIMED_OUT, 0, 1000 * MS),
    "cond_timedwait-monotonic": (TIMED_OUT, 0, 500 * MS),
    "cond_timedwait-past": (TIMED_OUT, 0, 0),
    "cond_clockwait": (TIMED_OUT, 0, 500 * MS),
    "mutex_timedlock": (TIMED_OUT, 0, 1000 * MS),
    "alarm-pause": (-1, INTERRUPTED, 2000 * MS),
    "ualarm": (-1, INTERRUPTED, 300 * MS),
    "alarm-nanosleep": (-1, INTERRUPTED, 1000 * MS),
    "alarm-sleep": (3, 0, 1000 * MS),
    "alarm-poll": (-1, INTERRUPTED, 1000 * MS),
    "setitimer": (0, 0, 850 * MS),
    "timer-signal": (-1, INTERRUPTED, 1000 * MS),
    "timer-thread": (1, 0, 0),
    "timerfd": (1, 0, 200 * MS),
    "timerfd-missed": (3, 0, 0),
    "timerfd-poll": (1, 0, 200 * MS),
    "times": (100, 0, 1000 * MS),
    "system": (0, 0, 0),
    "popen": (1, 0, 0),
    "fork-sleep": (7, 0, 3000 * MS),
    "fork-exec": (0, 0, 0),
    "vfork-exec": (0, 0, 0),
    "futex": (-1, TIMED_OUT, 1000 * MS),
    "futex-monotonic": (-1, TIMED_OUT, 500 * MS),
    "futex-realtime": (-1, TIMED_OUT, 500 * MS),
    "futex-woken": (0, 0, 300 * MS),
    "futex-changed": (-1, CHANGED, 0),
    "syscall-nanosleep": (0, 0, 1000 * MS),
    "syscall-clock": (1, 0, 0),
    "thrd_sleep": (0, 0, 1000 * MS),
    "mtx_timedlock": (1, 0, 1000 * MS),
    "cnd_timedwait": (1, 0, 1000 * MS),
    "timedjoin": (TIMED_OUT, 0, 1000 * MS),
    "clockjoin": (TIMED_OUT, 0, 500 * MS),
    "thrd_join": (42, 0, 500 * MS),
    "threads-300": (0, 0, MS),
    "threads-5000": (CHANGED, 0, MS),
    "sleep-an-hour": (0, 0, 3_600_000 * MS),
    "all": (0, 0, 3_640_352 * MS),
}
"""What programs/time_of_programs.c prints: results, errno and emulated nanoseconds."""


def needs(program: str, package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"needs {program}: apt-get install {package}"
    )


needs_perftest = needs("ib_write_lat", "perftest")
needs_pingpong = needs("ibv_rc_pingpong", "ibverbs-utils")
needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None or not Path("/usr/include/infiniband/verbs.h").exists(),
    reason="needs gcc and verbs.h: apt-get install gcc libibverbs-dev",
)


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def compiled(source: str, folder: Path) -> Path:
    program = folder / source
    text = Path(__file__).parent / "programs" / f"{source}.c"
    subprocess.run(["gcc", "-o", program, text, "-libverbs", "-lpthread"], check=True)
    program.chmod(0o755)
    return program


def spec(cpu: str = "free", rate: str = "1Gbit") -> str:
    return SPEC.format(cpu=cpu, rate=rate)


def run(user: User, *words: str) -> str:
    ended = user.run_emu("exec", "h2", "--", *words)
    assert ended.code == 0, ended
    return ended.out


def run_pair(user: User, *words: str) -> str:
    """Runs a server on h1 and its client on h2. Returns what the client prints."""
    return ProgramsLab(user).pair(words, (*words, "h1"), ("h1", "h2"))[1]


def results(output: str) -> list[str]:
    """The lines with the results of perftest and pingpong."""
    return re.findall(r"^ ?[0-9]+ .*", output, re.MULTILINE)


@contextmanager
def busy_machine() -> Iterator[None]:
    """Two processes compute meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@needs_compiler
def test_waits_end_at_emulated_times(me: User, tmp_path: Path) -> None:
    program = compiled("time_of_programs", tmp_path)
    with lab_up(me, spec(), "--clock", "exact"):
        lines = [line.split() for line in run(me, str(program)).splitlines()]
    assert {name: tuple(map(int, numbers)) for name, *numbers in lines} == WAITS


@needs_compiler
def test_a_program_in_the_machines_time_answers_before_a_time_out(me: User, tmp_path: Path) -> None:
    """As the daemon that starts ranks of MPI does when they end."""
    program = compiled("time_of_programs", tmp_path)
    with lab_up(me, spec(), "--clock", "exact"):
        name, result, error, took_ns = run(me, str(program), "busy-child").split()
    assert (name, result, error) == ("busy-child", "1", "0")
    assert int(took_ns) < 2000 * MS


@needs_compiler
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_a_program_is_stepped_through(me: User, tmp_path: Path, fabric: str) -> None:
    """Its first wait is held, too; a step lasts as long as it says, whether a program waits, ends
    or there is none."""
    program = compiled("time_of_programs", tmp_path)
    with (
        lab_up(me, f"fabric: {fabric}{spec()}", "--clock", "exact"),
        ProgramsLab(me).running("h1", str(program), "sleeps") as first,
    ):
        assert wait(first).out.splitlines()[1:] == ["10000000", "20000000", "30000000"]
        emu(me, "pause")
        state, began_ps = time_of(me)
        assert state == "paused"
        with ProgramsLab(me).running("h1", str(program), "sleeps") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == b"begins\n"
            for step_ms, printed in ((5, b""), (5, b"10000000\n"), (10, b"20000000\n")):
                emu(me, "step", f"{step_ms}ms")
                if printed:
                    assert second.stdout.readline() == printed
            assert time_of(me) == ("paused", began_ps + 20 * PS_A_MS)
            emu(me, "step", "15ms")
            assert wait(second).out == "30000000\n"
        emu(me, "step", "1ms")
        assert time_of(me) == ("paused", began_ps + 36 * PS_A_MS)
        emu(me, "continue")
        assert me.run_emu("exec", "h1", "--", str(program), "sleeps").code == 0
        assert time_of(me)[1] >= began_ps + 66 * PS_A_MS


def wait_until_after(time_ps: int, lab: LabClient) -> None:
    eventually(lambda: lab.ask(GetStatus())[0].time.now_ps > time_ps)


@needs_compiler
def test_time_runs_again_after_each_pause(
    me: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it goes on while the switches are about to hear that the NICs stand."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", me.environment["XDG_RUNTIME_DIR"])
    program = compiled("time_of_programs", tmp_path)
    with (
        lab_up(me, spec(), "--clock", "exact"),
        ProgramsLab(me).running("h1", str(program), "computes") as computes,
        LabClient(None) as lab,
    ):
        assert computes.stdout is not None
        assert computes.stdout.readline() == b"begins\n"
        for turn in range(200):
            os.killpg(computes.pid, signal.SIGSTOP)
            paused_ps = lab.ask(PauseTime())[0].now_ps
            os.killpg(computes.pid, signal.SIGCONT)
            time.sleep(turn / 100_000)
            lab.ask(ContinueTime())
            wait_until_after(paused_ps, lab)


@needs_perftest
def test_duration_of_perftest_is_emulated(me: User) -> None:
    """100 Mb/s for a second are 186.9 messages of 64 KiB with their headers."""
    with lab_up(me, spec(rate="100Mbit"), "--clock", "exact"):
        (line,) = results(run_pair(me, "ib_write_bw", "-F", "-D", "1"))
    size, messages, *_ = line.split()
    assert size == "65536"
    assert messages in ("186", "187")


@needs_perftest
def test_duration_of_perftest_gives_the_rate_of_the_line(me: User) -> None:
    """It measures how fast the time stamp counter counts, and divides by that. A message is 1/16
    MiB."""
    with lab_up(me, spec(rate="100Mbit"), "--clock", "exact"):
        (line,) = results(run_pair(me, "ib_write_bw", "-F", "-D", "1"))
    _, messages, _, average, _ = line.split()
    assert float(average) == pytest.approx(int(messages) / 16, abs=0.01)


@needs_perftest
def test_perftest_runs_until_it_is_stopped(me: User) -> None:
    """It prints the messages of each emulated second."""
    words = ("ib_write_bw", "-F", "-D", "1", "--run_infinitely")
    programs = ProgramsLab(me)
    with (
        lab_up(me, spec(rate="100Mbit"), "--clock", "exact"),
        programs.endless_pair(words, (*words, "h1"), ("h1", "h2")) as printed,
    ):
        rows = (line.split() for line in printed if line.startswith(b" 65536"))
        messages = [int(row[1]) for row in islice(rows, 3)]
    assert len(messages) == 3
    assert set(messages) <= {186, 187}


@needs_perftest
def test_status_names_what_time_waits_for(me: User) -> None:
    with (
        lab_up(me, spec(), "--clock", "exact"),
        ProgramsLab(me).running("h1", "ib_write_bw") as server,
    ):
        eventually(lambda: status_of(me)[0]["programs"] == {"h1": 1})
        assert status_of(me)[0]["stopped_programs"] == {}
        os.killpg(server.pid, signal.SIGSTOP)  # its child is the program
        eventually(lambda: status_of(me)[0]["stopped_programs"] == {"h1": 1})
        shown = me.run_emu("status").out
        os.killpg(server.pid, signal.SIGCONT)
        eventually(lambda: status_of(me)[0]["stopped_programs"] == {})
    assert "time stands, as a signal has stopped programs: 1 on h1" in shown


@needs_perftest
@needs_pingpong
@pytest.mark.parametrize(
    "command",
    [
        ("ib_write_lat", "-F", "-n", "100"),
        ("ib_send_lat", "-F", "-n", "100"),
        ("ib_write_bw", "-F", "-n", "50"),
        ("ibv_rc_pingpong", "-g", "0", "-n", "100"),
    ],
    ids=lambda command: command[0],
)
def test_runs_are_the_same_on_a_busy_machine(me: User, command: tuple[str, ...]) -> None:
    """To the picosecond, and to the last digit of what they print."""
    quiet = results_and_duration(me, command)
    with busy_machine():
        busy = results_and_duration(me, command)
    assert quiet == busy
    assert quiet[0]


def results_and_duration(me: User, command: tuple[str, ...]) -> tuple[list[str], int]:
    """Of a program in a new lab: pingpong's results depend on the microsecond that it begins in."""
    with lab_up(me, spec(), "--clock", "exact"):
        found = results(run_pair(me, *command))
        eventually(lambda: time_of(me)[0] == "stands")
        return found, time_of(me)[1]


@needs_perftest
def test_measured_computing_takes_emulated_time(me: User) -> None:
    """A message takes longer when both ends compute a hundred times slower."""
    latencies = []
    for cpu in ("free", "measured x 100"):
        with lab_up(me, spec(cpu), "--clock", "exact"):
            (line,) = results(run_pair(me, "ib_send_lat", "-F", "-n", "20"))
            latencies.append(float(line.split()[4]))
    free_us, measured_us = latencies
    assert measured_us > 10 * free_us


def test_status_says_that_measured_computing_varies(me: User) -> None:
    with lab_up(me, spec("measured x 2"), "--clock", "exact"):
        status = me.run_emu("status").out
    assert "hosts.cpu: measured x 2" in status
