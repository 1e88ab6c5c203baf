"""What `ovs-vswitchd` loads first: idle ports are not read, and memory for packets is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from emu.lab import ovs

LIBRARY = Path(ovs.__file__).with_name("ovs_preload.so")

_IDLE = """
    import ctypes, errno, os, select, socket

    libc = ctypes.CDLL(None, use_errno=True)

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    class Message(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint32),
                    ("parts", ctypes.POINTER(Vector)), ("part_count", ctypes.c_size_t),
                    ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("length", ctypes.c_uint32)]

    room = ctypes.create_string_buffer(64)
    part = Vector(ctypes.cast(room, ctypes.c_void_p), len(room))

    def receive(fd, flags=socket.MSG_DONTWAIT):
        message = Message(parts=ctypes.pointer(part), part_count=1)
        return libc.recvmmsg(fd, ctypes.byref(message), 1, flags, None)

    def read(fd):
        return libc.readv(fd, ctypes.byref(part), 1)

    def accept(fd):
        return libc.accept(fd, None, None)

    def poll(*fds):
        poller = select.poll()
        for fd in fds:
            poller.register(fd, select.POLLIN)
        return [fd for fd, _ in poller.poll(0)]

    def is_again(result):
        return result == -1 and ctypes.get_errno() == errno.EAGAIN

    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    fd = far.fileno()
"""


def run(script: str) -> None:
    """Runs Python code in a process that loads the library first."""
    subprocess.run(
        [sys.executable, "-c", dedent(script)],
        env=os.environ | {"LD_PRELOAD": str(LIBRARY)},
        check=True,
        timeout=60,
    )


def run_idle(script: str) -> None:
    run(dedent(_IDLE) + dedent(script))


def test_idle_socket_is_read_after_the_next_poll() -> None:
    """What arrives after a poll waits for the next one."""
    run_idle("""
        assert poll(fd) == []
        near.send(b"one")
        assert is_again(receive(fd))
        assert is_again(read(fd))
        assert poll(fd) == [fd]
        assert receive(fd) == 1
        near.send(b"more")
        assert read(fd) == 4
    """)


def test_ready_socket_is_read() -> None:
    """Beside an idle one, and as often as the program likes before its next poll."""
    run_idle("""
        other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        near.send(b"one")
        assert poll(fd, other[0].fileno()) == [fd]
        near.send(b"two")
        assert receive(fd) == 1
        assert receive(fd) == 1
        assert is_again(receive(fd))
    """)


def test_socket_outside_the_poll_is_read() -> None:
    """Only the latest poll counts."""
    run_idle("""
        assert poll(fd) == []
        other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        other[0].send(b"one")
        near.send(b"one")
        assert receive(other[1].fileno()) == 1
        poll(other[1].fileno())
        assert receive(fd) == 1
    """)


def test_blocking_read_of_an_idle_socket_waits() -> None:
    """EAGAIN would be no answer to it."""
    run_idle("""
        assert poll(fd) == []
        near.send(b"one")
        assert receive(fd, 0) == 1
    """)


def test_other_threads_read_all_sockets() -> None:
    """They may not poll."""
    run_idle("""
        from concurrent.futures import ThreadPoolExecutor
        assert poll(fd) == []
        near.send(b"one")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(receive, fd).result() == 1
    """)


def test_child_process_polls_like_its_parent() -> None:
    """Open vSwitch detaches by a fork."""
    run_idle("""
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            assert poll(fd) == []
            near.send(b"one")
            os._exit(not is_again(receive(fd)))
    """)


def test_idle_listener_accepts_after_the_next_poll() -> None:
    """A user's ovs-ofctl may connect at any time."""
    run_idle("""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        assert poll(listener.fileno()) == []
        client = socket.create_connection(listener.getsockname())
        assert is_again(accept(listener.fileno()))
        assert poll(listener.fileno()) == [listener.fileno()]
        assert accept(listener.fileno()) >= 0
    """)


_MEMORY = """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.realloc.restype = libc.calloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
    libc.malloc_usable_size.restype = ctypes.c_size_t
"""


def test_freed_packets_are_allocated_again() -> None:
    """All 32 of a read, in any order, and for no other size."""
    run(
        dedent(_MEMORY)
        + dedent("""
        first = [libc.malloc(4346) for _ in range(32)]
        assert len(set(first)) == 32
        for memory in first:
            libc.free(memory)
        assert libc.malloc(4400) not in first
        assert {libc.malloc(4346) for _ in range(32)} == set(first)
    """)
    )


def test_memory_has_room_for_its_size() -> None:
    """Around each limit, new and kept memory alike."""
    run(
        dedent(_MEMORY)
        + dedent("""
        sizes = [0, 1, *range(200, 300), *range(4300, 4400), *range(8100, 8300), 1 << 20]
        for _ in range(3):
            pieces = [(libc.malloc(size), size) for size in sizes for _ in range(3)]
            assert len({memory for memory, _ in pieces}) == len(pieces)
            for memory, size in pieces:
                assert memory % 16 == 0
                assert libc.malloc_usable_size(memory) >= size
                ctypes.memset(memory, 0xFF, size)
            for memory, _ in pieces:
                libc.free(memory)
    """)
    )


def test_kept_memory_works_with_calloc_and_realloc() -> None:
    """They are the C library's own, and all memory is."""
    run(
        dedent(_MEMORY)
        + dedent("""
        libc.free(libc.malloc(4346))
        memory = libc.malloc(4346)
        ctypes.memset(memory, 7, 4346)
        larger = libc.realloc(memory, 9000)
        assert ctypes.string_at(larger, 4346) == bytes([7]) * 4346
        libc.free(larger)
        assert ctypes.string_at(libc.calloc(1, 4346), 4346) == bytes(4346)
        libc.free(None)
    """)
    )
