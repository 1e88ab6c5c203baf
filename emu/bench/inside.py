"""`python -m emu.bench.inside FD`: the first process of a lab in which a figure is measured."""

from __future__ import annotations

from emu.bench import exact, hop, lab, relay
from emu.lab.init import main

if __name__ == "__main__":
    main(
        {
            relay.MeasureRelay: relay.job,
            hop.MeasureHop: hop.hop,
            hop.MeasureOpenVswitch: hop.open_vswitch_alone,
            exact.MeasureExact: exact.job,
            lab.BuildLab: lab.lab,
            lab.BuildMininet: lab.mininet,
        }
    )
