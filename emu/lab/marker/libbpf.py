"""The functions of libbpf that the marker needs, by ctypes.

Each returns libbpf's result or raises OSError with libbpf's errno. A program exists as long as
this process or a filter that runs it, a map as long as a descriptor of it; nothing is pinned.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_ANY = 0  # BPF_ANY


class BpfObject:
    """A compiled BPF file, loaded into the kernel."""

    def __init__(self, path: Path) -> None:
        """Loads a compiled file. Raises OSError if libbpf is missing or the kernel refuses."""
        self._lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
        for returns_pointer in ("bpf_object__open", "bpf_object__find_program_by_name"):
            getattr(self._lib, returns_pointer).restype = ctypes.c_void_p
        self._lib.libbpf_set_print(None)  # errors are raised, not printed
        self._object = ctypes.c_void_p(_pointer(self._lib.bpf_object__open(os.fsencode(path))))
        _result(self._lib.bpf_object__load(self._object))

    def map_fd(self, name: str) -> int:
        """The descriptor of a map. The caller must not close it."""
        return _result(self._lib.bpf_object__find_map_fd_by_name(self._object, name.encode()))

    def update(self, map_fd: int, key: int, value: bytes) -> None:
        """Sets one element of a map whose keys are 32-bit numbers."""
        index = ctypes.c_uint32(key)
        _result(self._lib.bpf_map_update_elem(map_fd, ctypes.byref(index), value, _ANY))

    def look_up(self, map_fd: int, key: int, size: int) -> bytes:
        """One element of a map whose keys are 32-bit numbers."""
        index, value = ctypes.c_uint32(key), ctypes.create_string_buffer(size)
        _result(self._lib.bpf_map_lookup_elem(map_fd, ctypes.byref(index), value))
        return value.raw

    def program_fd(self, name: str) -> int:
        """The descriptor of a program. The caller must not close it."""
        found = _pointer(self._lib.bpf_object__find_program_by_name(self._object, name.encode()))
        return _result(self._lib.bpf_program__fd(ctypes.c_void_p(found)))


def _result(result: int) -> int:
    """Returns a result of libbpf. Raises OSError if it is -errno."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def _pointer(pointer: int | None) -> int:
    if not pointer:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return pointer
