"""Programs that break every rule harm themselves alone. The sanitizers run these tests, too."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from struct import Struct
from typing import Any

import pytest

from emu._core import ffi, lib
from emu.verbs.cm.ip_service import PortSpace
from tests.support.verbs_client import MEMORY_BYTES, Program, Served, sealed, served

ROUNDS = 1500
FIELDS = ("mr", "cq", "srq", "qp", "limit", "attr")
RIGHT_VERBS = (lib.VERB_SEND, lib.VERB_WRITE, lib.VERB_WRITE_IMM, lib.VERB_READ, lib.VERB_FETCH_ADD)
NUMBERS = (0, 1, 2, 3, 7, 64, 4095, 4096, 1 << 15, 1 << 22, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
PAGE = 4096
DOORBELLS = 256
_RINGS = 16
"""Where a session counts doorbells."""
_FAR = lib.UVERBS_DEST | lib.UVERBS_AV | lib.UVERBS_RQ_PSN
_QUEUE = Struct("16I")
_WQE = Struct("QIIBBxx12xIIQ16xQII")
"""A `struct uverbs_wqe` with one element: wr_id, sge_count, inline_bytes, verb, flags, imm_data,
rkey, remote_addr; addr, length, lkey."""
_SLOT_BYTES = 320
SHARED_PART = 80_000
"""Of the session: the part that is read, and some."""


@pytest.fixture
def nics(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as up:
        yield up


# ---- files ---------------------------------------------------------------------


def unsealed() -> int:
    return sealed(MEMORY_BYTES, 0)


def too_small() -> int:
    return sealed(100)


def regular() -> int:
    file = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    os.ftruncate(file, MEMORY_BYTES)
    return file


def no_memory() -> int:
    return os.open("/dev/null", os.O_RDWR)


@pytest.mark.parametrize("file", [unsealed, too_small, regular, no_memory])
def test_memory_that_may_shrink_is_refused(nics: Served, file: Callable[[], int]) -> None:
    """The NICs would end by SIGBUS."""
    program = nics.program()
    version = {"command": lib.UVERBS_OPEN, "version": lib.UVERBS_VERSION}
    assert nics.ask(program, [file(), sealed(MEMORY_BYTES)], **version).error
    opened = nics.opened()
    assert nics.ask(opened, [file()], command=lib.UVERBS_CREATE_CQ, cq={"cqe": 100}).error
    program.close()
    opened.close()


def test_emulated_time_cannot_be_changed(nics: Served) -> None:
    """Nor can a program make the NICs wait by the flags of a pipe."""
    program = nics.opened()
    bell, time, events = program.pipes
    for change in (lambda: os.ftruncate(time, 0), lambda: os.pwrite(time, b"x", 0)):
        with pytest.raises(PermissionError):
            change()
    os.set_blocking(bell, True)
    os.write(bell, b"x" * 8)
    nics.turn()
    assert nics.opened()
    assert os.get_blocking(events)


# ---- requests --------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"", b"x", b"x" * 100_000])
def test_request_of_wrong_length_ends_the_program(nics: Served, text: bytes) -> None:
    other, program = nics.opened(), nics.opened()
    program.send_bytes(text)
    nics.turn()
    with pytest.raises(EOFError):
        program.reply()
    assert nics.ask(other, command=lib.UVERBS_ALLOC_PD).error == 0


def _ask_for_ever(nics: Served, program: Program) -> None:
    while True:
        program.send(command=lib.UVERBS_QUERY_QP)
        nics.turn()


def test_program_that_reads_no_replies_is_ended(nics: Served) -> None:
    other, program = nics.opened(), nics.opened()
    program.line.setblocking(False)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        _ask_for_ever(nics, program)
    assert nics.ask(other, command=lib.UVERBS_ALLOC_PD).error == 0


def test_enumerations_are_checked(nics: Served) -> None:
    program = nics.opened()
    pd = nics.ask(program, command=lib.UVERBS_ALLOC_PD).handle
    cq = nics.ask(program, [program.memory()], command=lib.UVERBS_CREATE_CQ, cq={"cqe": 10}).handle
    queues = {"send_cq": cq, "recv_cq": cq, "max_send_wr": 4, "max_recv_wr": 4, "pd": pd}

    def make(transport: int) -> Any:
        files = [program.memory(), program.memory()]
        return nics.ask(
            program, files, command=lib.UVERBS_CREATE_QP, qp={**queues, "transport": transport}
        )

    assert make(77).error
    made = make(lib.TRANSPORT_RC)
    assert made.error == 0
    for state in (7, 77, 2**32 - 1):
        attr = {"given": lib.UVERBS_STATE, "state": state}
        wrong = nics.ask(program, command=lib.UVERBS_MODIFY_QP, handle=made.handle, attr=attr)
        assert wrong.error
    mr = {"pd": pd, "addr": PAGE, "length": PAGE, "access": 2**31}
    assert nics.ask(program, command=lib.UVERBS_REG_MR, mr=mr).error


def test_thousand_connections_are_served(nics: Served) -> None:
    """Those that open nothing cost a file each."""
    programs = []
    for _ in range(1000):
        programs.append(nics.program())
        nics.turn()
    opened = nics.opened("h2")
    assert nics.ask(opened, command=lib.UVERBS_ALLOC_PD).error == 0
    for program in programs:
        program.close()
    nics.turn()
    assert nics.server.count_programs() == {"h2": 1}


def test_ended_programs_leave_no_cycles(nics: Served) -> None:
    """On the real clock the NICs collect no garbage."""

    def lives() -> None:
        program = nics.opened()
        domain = nics.ask(program, command=lib.UVERBS_ALLOC_PD).handle
        mr = {"pd": domain, "length": PAGE}
        assert nics.ask(program, command=lib.UVERBS_REG_MR, mr=mr).error == 0
        reading, writing = os.pipe()
        channel = nics.ask(program, [writing], command=lib.UVERBS_CM_CREATE_CHANNEL).handle
        cm = {"channel": channel, "port_space": PortSpace.TCP}
        assert nics.ask(program, command=lib.UVERBS_CM_CREATE_ID, cm=cm).error == 0
        os.close(reading)
        program.close()
        nics.turn()

    lives()
    gc.collect()
    gc.disable()
    try:
        lives()
        assert gc.collect() == 0
    finally:
        gc.enable()


def _connect_for_ever(nics: Served, programs: list[Program]) -> None:
    while True:
        programs.append(nics.program())
        nics.turn()


def test_nics_without_files_go_on(nics: Served) -> None:
    """When programs have ended, others can connect."""
    served_before = nics.opened()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    waiting: list[Program] = []
    in_use = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 40, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            _connect_for_ever(nics, waiting)
        nics.turn()
        assert nics.ask(served_before, command=lib.UVERBS_ALLOC_PD).error == 0
        for program in waiting:
            program.close()
        nics.turn()
        nics.turn()
        assert nics.ask(nics.opened(), command=lib.UVERBS_ALLOC_PD).error == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- anything ------------------------------------------------------------------------


class Attacker:
    """A program that does something at random again and again."""

    def __init__(self, nics: Served, rng: Random) -> None:
        self._nics, self._rng = nics, rng
        self._connect()

    def _connect(self) -> None:
        self._program = self._nics.program(self._rng.choice(("h1", "h2")))
        self._program.open()
        self._fill_doorbells()
        self._handles: list[int] = [0]
        self._keys: list[int] = []
        self._nics.turn()
        self._address = self._program.reply().opened.device.address
        self._make_queue_pair()

    def act(self) -> None:
        acts = (self._request, self._scribble, self._post, self._vanish, self._send_bytes)
        try:
            self._rng.choices(acts, (10, 5, 80, 1, 2))[0]()
            self._nics.turn()
            self._read_replies()
        except (OSError, EOFError):
            self._program.close()
            self._connect()

    def _read_replies(self) -> None:
        while True:
            try:
                reply = self._program.reply()
            except BlockingIOError:
                return
            if not reply.error and reply.handle:
                self._handles.append(reply.handle)
            if reply.number:
                self._keys.append(reply.number)

    def _make_queue_pair(self) -> None:
        """Objects that work, for the numbers of the others to be near something."""
        program, send = self._program, self._program.send
        send(command=lib.UVERBS_ALLOC_PD)
        mr = {"pd": 1, "addr": PAGE, "length": 8 * PAGE, "iova": PAGE, "access": 15}
        send(command=lib.UVERBS_REG_MR, mr=mr)
        send([program.memory()], command=lib.UVERBS_CREATE_CQ, cq={"cqe": 20})
        qp = {"pd": 1, "send_cq": 3, "recv_cq": 3, "max_send_wr": 16, "max_recv_wr": 16}
        send([program.memory(), program.memory()], command=lib.UVERBS_CREATE_QP, qp=qp)
        while len(self._keys) < 2:  # of the region, and the number of the queue pair
            self._nics.turn()
            self._read_replies()
        far = {"dest_qp_num": self._keys[-1], "dest_address": self._address}
        states = (lib.QP_INIT, 0), (lib.QP_RTR, _FAR), (lib.QP_RTS, lib.UVERBS_SQ_PSN)
        for state, given in states:
            attr = {"given": lib.UVERBS_STATE | given, "state": state, **far}
            send(command=lib.UVERBS_MODIFY_QP, handle=4, attr=attr)
            self._nics.turn()

    def _number(self, kind: str) -> int:
        bits = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 64}[kind]
        pools = (NUMBERS, self._handles, self._keys or NUMBERS, range(20), range(2**62))
        pool: Sequence[int] = self._rng.choices(pools, (6, 6, 2, 8, 1))[0]
        return int(self._rng.choice(pool)) % int(2**bits)

    def _request(self) -> None:
        request: dict[str, Any] = {
            "command": self._rng.randrange(lib.UVERBS_COMMANDS + 2),
            "handle": self._number("uint32_t"),
        }
        for name in FIELDS:
            request[name] = self._filled(name)
        files = [self._file() for _ in range(self._rng.choice((0, 1, 1, 2, 2, 3)))]
        self._program.send(files, **request)

    def _filled(self, name: str) -> dict[str, int]:

        fields = dict(ffi.typeof("struct uverbs_request").fields)[name].type.fields
        return {field: self._number(what.type.cname) for field, what in fields}

    def _file(self) -> int:
        kinds = (self._program.memory, unsealed, too_small, no_memory)
        return self._rng.choices(kinds, (8, 1, 1, 1))[0]()

    def _scribble(self) -> None:
        """Writes numbers into shared memory, most of them where queues begin."""
        place = self._rng.randrange(len(self._program.shared))
        shared = self._program.shared[place]
        size = SHARED_PART if place == 0 else min(len(shared), 8192)
        for _ in range(self._rng.randrange(1, 60)):
            offset = self._rng.randrange(self._rng.choice((16, 128, size)) // 4) * 4
            shared[offset : offset + 4] = self._number("uint32_t").to_bytes(4, "little")
        self._ring()

    def _post(self) -> None:
        """A request that may be right, in the queue of sends or of receives."""
        queue = self._program.shared[self._rng.choice((3, 4))]
        head = int.from_bytes(queue[:4], "little")
        place = _QUEUE.size + head % 16 * _SLOT_BYTES
        is_right = self._rng.random() < 0.95
        verb = self._rng.choice(RIGHT_VERBS) if is_right else self._rng.randrange(lib.VERBS + 1)
        length = 8 if is_right else self._rng.choice((0, 4096, 99_999))
        address, flags = PAGE * self._rng.randrange(1, 9), self._rng.randrange(8)
        key = self._keys[0] if self._keys else 0
        inline_bytes = 0 if is_right else self._rng.choice((0, 8, 2000))
        wqe = _WQE.pack(head, 1, inline_bytes, verb, flags, key, key, PAGE, address, length, key)
        queue[place : place + len(wqe)] = wqe
        queue[:4] = ((head + 1) % 2**32).to_bytes(4, "little")
        self._ring()

    def _ring(self) -> None:
        """The doorbells of all queues, so that what was written is read."""
        session = self._program.shared[0]
        rings = int.from_bytes(session[_RINGS : _RINGS + 4], "little")
        session[_RINGS : _RINGS + 4] = ((rings + DOORBELLS) % 2**32).to_bytes(4, "little")

    def _fill_doorbells(self) -> None:
        every = b"".join(number.to_bytes(4, "little") for number in range(DOORBELLS))
        session = self._program.shared[0]
        session[PAGE : PAGE + 60 * len(every)] = 60 * every

    def _vanish(self) -> None:
        raise EOFError

    def _send_bytes(self) -> None:
        self._program.send_bytes(self._rng.randbytes(self._rng.choice((1, 8, 500, 5000))))


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_nics_survive_anything_that_programs_do(tmp_path: Path, fabric: str) -> None:
    with served(tmp_path, fabric) as nics:
        honest = nics.opened()
        rng = Random(f"hostile {fabric}")
        attackers = [Attacker(nics, rng) for _ in range(3)]
        for turn in range(ROUNDS):
            attackers[turn % len(attackers)].act()
        assert nics.packets() > ROUNDS // 10, "few requests were right"
        assert nics.ask(honest, command=lib.UVERBS_ALLOC_PD).error == 0
