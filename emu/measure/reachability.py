"""Whether one place of a lab reaches another, as measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredCell:
    """Whether a service reaches one place from another."""

    source: str
    target: str
    service: str
    source_kind: str
    """The group of places that it is in: hosts, agents, ..."""
    target_kind: str
    expected: bool
    reached: bool | None
    """None: not known."""

    @property
    def is_wrong(self) -> bool:
        return self.reached is not None and self.reached != self.expected

    def __str__(self) -> str:
        what = "reaches" if self.reached else "does not reach"
        allowed = "allows" if self.expected else "does not allow"
        return f"{self.source} {what} {self.target} by {self.service}, which the spec {allowed}"
