"""Wrong ECN: a switch that marks by other thresholds than it should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from emu.fabric_kind import Framing
from emu.spec.classes import PRIORITIES
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnPorts, register
from emu.spec.parameters import Parameters
from emu.spec.quantities import Fraction, Size
from emu.spec.switch import Curve
from emu.units import write_size
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class WrongEcn(OnPorts):
    """Queues of the ports that mark do so by another curve; keys that are not given stay."""

    key: ClassVar[str] = "wrong-ecn"
    meaning: ClassVar[str] = "A switch that marks too late, say: with Kmin above XOFF. RoCE only."
    unavailable: ClassVar = {
        Framing.INFINIBAND: "InfiniBand's switches mark by fecn, and have no kmin or kmax; "
        "leave it out, or use fabric: roce"
    }
    already: ClassVar[str] = "has wrong ECN thresholds already"

    kmin_bytes: Size | None = Field(
        default=None, alias="kmin", description="Depth up to which nothing is marked."
    )
    kmax_bytes: Size | None = Field(
        default=None,
        alias="kmax",
        lt=2**32,
        description="Depth from which every packet is marked.",
    )
    pmax: Fraction | None = Field(
        default=None, description="Probability of a mark just below kmax."
    )

    def is_at(self, spec: Spec, port: Port) -> bool:
        return spec.port(port).ecn is not None

    @property
    def missing(self) -> str:
        return "does not mark, so it has no thresholds; give it switches.ecn"

    def curve(self, right: Curve) -> Curve:
        """A queue's curve while the fault lasts."""
        given: dict[str, Any] = {
            "kmin_given": self.kmin_bytes,
            "kmax_given": self.kmax_bytes,
            "pmax": self.pmax,
        }
        return right.model_copy(
            update={key: value for key, value in given.items() if value is not None}
        )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        """A queue that does not mark has a curve of zeros."""
        values = {name: [0] * PRIORITIES for name in ("kmin_bytes", "kmax_bytes", "pmax_2_32")}
        for queue, right in _curves(spec, port):
            for name in values:
                values[name][queue] = getattr(self.curve(right), name)
        return values

    def wrong_settings(
        self, at: KeyPath, spec: Spec, ports: Sequence[Port]
    ) -> Iterator[Diagnostic]:
        about: tuple[KeyPath, ...] = (("switches",), ("topology",))
        curves = [(port, curve) for port in ports for _, curve in _curves(spec, port)]
        if all(self.curve(curve) == curve for _, curve in curves):
            yield Diagnostic(
                at,
                f"{self.place} marks by these thresholds anyhow; change one, or leave it out",
                about=about,
                idle_if_inherited=True,
            )
        key = "kmax" if self.kmin_bytes is None else "kmin"
        wrong = (_wrong_curve(spec, port, self.curve(curve)) for port, curve in curves)
        if text := next(filter(None, wrong), None):
            yield Diagnostic((*at, key), text, about=about)
        by_red = [port for port in ports if (ecn := spec.port(port).ecn) and ecn.marker == "red"]
        if by_red:
            yield Diagnostic(
                at,
                f"at {spec.topology.build().port_name[by_red[0]]} the kernel's RED marks (marker: "
                "red); its thresholds cannot change while the fabric is up; use "
                "switches.ecn.marker: ebpf or shim",
                about=about,
            )

    @model_validator(mode="after")
    def _some_key(self) -> Self:
        if self.kmin_bytes is None and self.kmax_bytes is None and self.pmax is None:
            raise ValueError("needs at least one of kmin, kmax, pmax; this has none")
        return self


def _curves(spec: Spec, port: Port) -> Iterator[tuple[int, Curve]]:
    """The queues of a port that mark, each with its curve."""
    ecn = spec.port(port).ecn
    for queue in range(PRIORITIES) if ecn else ():
        curve = ecn.curve(queue) if ecn else None
        if curve is not None:
            yield queue, curve


def _wrong_curve(spec: Spec, port: Port, curve: Curve) -> str | None:
    """The error of a curve; None: there is none."""
    name = spec.topology.build().port_name[port]
    kmin, kmax = write_size(curve.kmin_bytes), write_size(curve.kmax_bytes)
    buffer = spec.switch(port.node).buffer_bytes
    if curve.kmin_bytes > curve.kmax_bytes:
        return (
            f"at {name} kmin would be {kmin}, above kmax ({kmax}): marking would end before it "
            "began; lower kmin or raise kmax"
        )
    if curve.kmin_bytes >= buffer:
        return (
            f"no queue of {name} gets as deep as {kmin} in a buffer of {write_size(buffer)}; "
            "lower kmin"
        )
    return None
