"""Reads the text of a fault for a running lab, and validates it like a fault of the lab's spec."""

from __future__ import annotations

from dataclasses import replace

from emu.errors import SpecError, UsageError
from emu.spec.diagnostic import Diagnostic, KeyPath, dotted
from emu.spec.document import Unreadable, read
from emu.spec.fault import Fault
from emu.spec.scenario import Spec
from emu.spec.validation import validated_alone


def fault_from_text(text: str, spec: Spec) -> Fault:
    """The fault that the text describes, written as in a spec's `faults:`, in the fabric of `spec`.

    Raises UsageError when the text is not YAML, and SpecError with all findings when the fault is
    invalid. A finding names the key within the text.
    """
    try:
        document = read(text.encode(errors="surrogateescape"), text)
    except Unreadable:
        raise UsageError(
            f"{text!r} is not a fault; write it like: loss: {{cable: leaf1:h1, every: 256}}"
        ) from None
    own: KeyPath = ("faults", 0)
    findings = [replace(finding, path=(*own, *finding.path)) for finding in document.findings]
    if isinstance(document.data, dict) and "at" in document.data:
        begins = "has no effect in a running lab, where a fault begins when it is set; leave it out"
        findings.append(Diagnostic((*own, "at"), begins))
    data = spec.to_mapping() | {"faults": [document.data]}
    with_fault, contradicting = validated_alone(data, [finding.path for finding in findings])
    findings += contradicting
    if findings:
        raise SpecError([f"{text!r}: {_within(own, finding)}" for finding in findings])
    return with_fault.faults[0]


def _within(part: KeyPath, finding: Diagnostic) -> str:
    """A finding's text. Keys inside of `part` of the spec are named relative to it."""
    inside = finding.path[: len(part)] == part
    path = dotted(finding.path[len(part) :] if inside else finding.path)
    return f"{path}: {finding.text}" if path else finding.text
