"""The text of a fault for a running lab -> a Fault, validated like one of the lab's spec."""

from __future__ import annotations

from dataclasses import replace

from emu.errors import SpecError, UsageError
from emu.spec.diagnostic import Diagnostic, KeyPath, dotted
from emu.spec.document import Unreadable, read
from emu.spec.fault import Fault
from emu.spec.scenario import Spec
from emu.spec.validation import judged_alone


def fault_from_text(text: str, spec: Spec) -> Fault:
    """A fault that begins now in a fabric of this spec, written as in a spec's `faults:`.

    Raises UsageError when the text is no YAML, SpecError with all findings otherwise: after
    the text, as its own keys.
    """
    try:
        document = read(text.encode(errors="surrogateescape"), text)
    except Unreadable:
        raise UsageError(
            f"{text!r} is no fault; write it like: loss: {{cable: leaf1:h1, every: 256}}"
        ) from None
    own: KeyPath = ("faults", 0)
    findings = [replace(finding, path=(*own, *finding.path)) for finding in document.findings]
    if isinstance(document.data, dict) and "at" in document.data:
        begins = "is for a spec; in a lab that is up a fault begins when it is set, so leave it out"
        findings.append(Diagnostic((*own, "at"), begins))
    data = spec.to_mapping() | {"faults": [document.data]}
    judged, contradicting = judged_alone(data, [finding.path for finding in findings])
    findings += contradicting
    if findings:
        raise SpecError([f"{text!r}: {_within(own, finding)}" for finding in findings])
    return judged.faults[0]


def _within(part: KeyPath, finding: Diagnostic) -> str:
    """A finding for whom this part of a spec is all they wrote."""
    inside = finding.path[: len(part)] == part
    path = dotted(finding.path[len(part) :] if inside else finding.path)
    return f"{path}: {finding.text}" if path else finding.text
