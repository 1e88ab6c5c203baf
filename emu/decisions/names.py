"""The words that users write: names of fabrics, and of what is measured of them."""

from __future__ import annotations

IB, LOSSLESS, TUNED, LOSSY = "ib", "roce-lossless", "roce-tuned", "roce-lossy"
AS_IT_IS = "spec"
USUAL = (IB, LOSSLESS, TUNED, LOSSY)
"""The fabrics that are compared unless the user names others."""

ALL, FAILURES, NONE = "all", "failures", "none"
CHANGES = (ALL, FAILURES, NONE)
"""Which changes of each fabric are measured."""
