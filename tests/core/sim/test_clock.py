"""The clock's timer wheels, compared with a plain list of timers that is searched for the
earliest."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "emu/core"
NEVER = 2**63 - 1
CLASSES = {"common": 0, "arrival": 1, "own": 2, "background": 2}
"""With their order at one instant."""
TIMERS = 64
MANY = 900
"""Timers in one tick."""
REACHES = [0, 1, 1_000, 50_000, 3_000_000, 10**10, 10**13, 10**17]
"""Maximum distances of timers in ps: within a tick, within each wheel's turn, beyond."""


@dataclass
class Model:
    """The output that the C clock should print."""

    now: int = 0
    set_at: int = 0
    alarms: dict[int, tuple[int, int, int, str, int]] = field(default_factory=dict)
    """By timer: the time when it is due, the place of its class, its place there (by when it was
    set, or by number), its class, its period."""
    said: list[str] = field(default_factory=list)

    def obey(self, command: str) -> None:
        verb, *numbers = command.split()
        if verb in CLASSES:
            self.set(verb, *map(int, numbers))
        else:
            getattr(self, verb)(*map(int, numbers))

    def set(self, kind: str, timer: int, at: int, period: int) -> None:
        self.set_at += 1
        place = timer if kind == "arrival" else self.set_at
        self.alarms[timer] = (at, CLASSES[kind], place, kind, period)

    def cancel(self, timer: int) -> None:
        self.alarms.pop(timer, None)

    def run(self, until: int) -> None:
        while self.alarms:
            timer = min(self.alarms, key=lambda n: self.alarms[n][:3])
            at, _, _, kind, period = self.alarms[timer]
            if at > until:
                break
            del self.alarms[timer]
            self.said.append(f"{timer} {at}")
            if period:
                self.set(kind, timer, at + period, period)
        self.now = until

    def deadline(self) -> None:
        self.said.append(f"next {min((at for at, *_ in self.alarms.values()), default=NEVER)}")

    def work(self) -> None:
        has_work = any(kind == "own" for *_, kind, _ in self.alarms.values())
        self.said.append(f"work {int(has_work)}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("clock") / "clock_trace"
    flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    sources = [HERE / "clock_trace.c", CORE / "sim/clock.c", CORE / "sim/timer.c"]
    subprocess.run(["cc", *flags, f"-I{CORE}", *map(str, sources), "-o", str(built)], check=True)
    return built


@pytest.mark.parametrize("seed", range(8))
def test_timers_fire_like_those_of_a_plain_list(program: Path, seed: int) -> None:
    """Timers set, moved earlier and later, cancelled, repeated; near, far, and at the same time."""
    rng = random.Random(seed)
    model, script = Model(), []
    for _ in range(5_000):
        command = _command(rng, model)
        script.append(command)
        model.obey(command)
    done = subprocess.run([program], input="\n".join(script), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == model.said
    assert len(model.said) > 2_000


def test_next_three_timers_of_a_tick_are_prefetched(program: Path) -> None:
    """Each event brings a timer one event nearer. The first of a tick catch up on what they have
    missed; timers of the next tick are not prefetched."""
    script = ["prefetch", *(f"own {timer} {1024 + timer} 0" for timer in range(5)), "own 9 2048 0"]
    done = subprocess.run(
        [program], input="\n".join([*script, "run 4096"]), capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        *("soon 0 3", "soon 1 3", "soon 0 2"),
        *("soon 3 3", "soon 2 2", "soon 1 1", "0 1024"),
        *("soon 4 3", "soon 3 2", "soon 2 1", "1 1025"),
        *("soon 4 2", "soon 3 1", "2 1026"),
        *("soon 4 1", "3 1027"),
        *("4 1028", "soon 9 3", "soon 9 2", "9 2048"),
    ]


@pytest.mark.parametrize("moment", ["before the tick", "within the tick"])
def test_a_tick_may_have_any_number_of_timers(program: Path, moment: str) -> None:
    """Some are cancelled, some are set to earlier."""
    rng, model = random.Random(moment), Model()
    script = ["own 0 1024 0", "run 1024"] if moment == "within the tick" else []
    for timer in range(MANY):
        script.append(f"{rng.choice([*CLASSES])} {timer} {rng.randint(1500, 2000)} 0")
    for timer in range(0, MANY, 7):
        script.append(rng.choice([f"cancel {timer}", f"own {timer} {rng.randint(1100, 1500)} 0"]))
    script += ["run 1600", "deadline", "run 1601", *(f"own {n} 1700 0" for n in range(0, MANY, 5))]
    script += ["deadline", "run 3000"]
    for command in script:
        model.obey(command)
    done = subprocess.run(
        [program], input="\n".join(script), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == model.said
    assert len(model.said) > MANY / 2


def test_many_timers_of_one_instant_may_repeat_within_their_tick(program: Path) -> None:
    """Each is put behind the one before it, unless that has fired, was cancelled or moved."""
    rng, model = random.Random(1), Model()
    script = [f"own {timer} 1024 {rng.choice([5, 7])}" for timer in range(200)]
    for until in range(1024, 1090):
        script.append(f"run {until}")
        timer = rng.randrange(200)
        script.append(rng.choice([f"cancel {timer}", f"own {timer} {until + 1} 3", "deadline"]))
        script.append(f"own {timer} {until + rng.choice([1, 2, 40])} {rng.choice([0, 5])}")
    for command in script:
        model.obey(command)
    done = subprocess.run(
        [program], input="\n".join(script), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == model.said
    assert len(model.said) > 1_000


def test_only_own_timers_in_the_foreground_are_work(program: Path) -> None:
    """Near and far ones, until they fire or are cancelled."""
    others = [*(f"{kind} {n} {10**n} 3" for n, kind in enumerate(("common", "arrival"), 1))]
    script = ["work", *others, "background 3 500 7", "work"]
    for reach in REACHES:
        script += [f"own 5 {reach + 10} 0", "work", "cancel 5", "work"]
    script += ["own 5 1024 0", "own 6 1025 0", "run 1023", "work", "run 1024", "work", "run 1025"]
    model = Model()
    for command in (*script, "work"):
        model.obey(command)
    done = subprocess.run(
        [program], input="\n".join([*script, "work"]), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == model.said
    assert model.said[-1] == "work 0"


def test_a_skip_of_whole_periods_changes_nothing_later(program: Path) -> None:
    """Upkeep and arrivals fire at the times and in the order that they have without it, also beside
    a timer that is due at the same instant."""
    begin = """
        upkeep 1 100 50
        arrival 2 120 50
        upkeep 3 100 50
        own 4 1000000 0
        upkeep 6 90 25
        run 110
    """
    later = """
        run 999950
        own 5 999975 0
        run 1000020
    """
    asked = "event\nlast\n"
    ran, skipped = (_said(program, text) for text in (begin + later, begin + "skip 900000" + later))
    assert ran[-20:] == skipped[-20:]
    assert 5 * len(skipped) < len(ran)
    assert _said(program, begin + asked)[-2:] == ["event 1000000", "last 150"]


def test_a_timer_that_is_left_out_is_due_after_a_skip(program: Path) -> None:
    assert _said(program, "own 1 500 0\nskip 800\nrun 900") == ["1 800"]


def _said(program: Path, script: str) -> list[str]:
    text = "\n".join(line.strip() for line in script.splitlines() if line.strip())
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _command(rng: random.Random, model: Model) -> str:
    timer, reach = rng.randrange(TIMERS), rng.choice(REACHES)
    at = model.now + rng.randint(0, reach)
    match rng.choices(["set", "cancel", "run", "deadline"], [70, 10, 15, 5])[0]:
        case "set":
            period = 0 if rng.random() < 0.9 else max(1, reach // 3)
            return f"{rng.choice([*CLASSES])} {timer} {at} {period}"
        case "cancel":
            return f"cancel {timer}"
        case "run":
            # Not so far that timers of short period fire millions of times.
            busy = min((period for *_, period in model.alarms.values() if period), default=NEVER)
            return f"run {min(at, model.now + 20 * busy)}"
    return "deadline"
