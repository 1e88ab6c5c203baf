"""What an operation does with the memory of the other host."""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """The kind of an operation."""

    WRITE = "write"
    WRITE_IMM = "write-imm"
    SEND = "send"
    SEND_IMM = "send-imm"
    SEND_INV = "send-inv"
    READ = "read"
    COMPUTE = "compute"
    """Work of a host, which sends no message."""
    CMP_SWAP = "cmp-swap"
    FETCH_ADD = "fetch-add"

    @property
    def is_atomic(self) -> bool:
        """Whether the operation changes a word at the responder."""
        return self in (Verb.CMP_SWAP, Verb.FETCH_ADD)

    @property
    def fetches(self) -> bool:
        """Whether the bytes go from the responder to the requester."""
        return self is Verb.READ or self.is_atomic
