"""Ignored CNPs: a NIC whose reaction point is off, so that CNPs never slow it down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from emu.fabric_kind import Framing
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnHost, register

if TYPE_CHECKING:
    from emu.spec.fault import Fault
    from emu.spec.scenario import Spec


@register
class IgnoredCnps(OnHost):
    """The host's NIC ignores CNPs, and sends at line rate: ECN without DCQCN."""

    key: ClassVar[str] = "ignored-cnps"
    meaning: ClassVar[str] = "A NIC that does not slow down at CNPs. RoCE only."
    unavailable: ClassVar = {
        Framing.INFINIBAND: "this is for RoCE's CNPs; leave it out, or use fabric: roce"
    }
    already: ClassVar[str] = "ignores CNPs already"

    def applies(self, spec: Spec) -> bool:
        return super().applies(spec) and self._reacts_to_cnps(spec)

    def _reacts_to_cnps(self, spec: Spec) -> bool:
        nic = spec.host(self.host).nic
        return nic.control(nic.cc).becn.by == "cnp"

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        if self.host in spec.topology.build().host and not self._reacts_to_cnps(spec):
            yield Diagnostic(
                (*at, self.key, "host"),
                f"{self.host} (cc: {spec.host(self.host).nic.cc}) does not react to CNPs anyhow; "
                "use cc: dcqcn, dcqcn-nvidia or cct in hosts.nic",
                about=(("hosts",), ("topology",)),
                idle_if_inherited=True,
            )
