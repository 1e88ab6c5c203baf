"""`python -m emu.bench.inside FD`: the first process of a lab in which a figure is measured."""

from __future__ import annotations

from emu.bench import hop, lab, relay
from emu.lab.init import main

if __name__ == "__main__":
    main(
        {
            "relay": relay.job,
            "hop": hop.hop,
            "open_vswitch_alone": hop.open_vswitch_alone,
            "lab": lab.lab,
            "mininet": lab.mininet,
        }
    )
