"""InfiniBand's control plane: a real subnet manager decides where packets go.

    Topology ──▶ net file ──▶ ibsim ◀──SMPs──▶ OpenSM ──▶ dump files ──▶ Subnet
                 netfile      ──────── opensm ────────    dumps          subnet

ibsim answers subnet management packets as the fabric's switches and NICs
would; it carries no data. OpenSM, the subnet manager that real clusters run,
discovers that fabric, gives every port its LID and computes each switch's
linear forwarding table (LFT). The emulator's switches follow those tables.

Left out: partitions, multicast, several paths per host (LMC).
"""

from emu.subnet.opensm import sweep
from emu.subnet.resweep import sweep_through
from emu.subnet.subnet import Subnet

__all__ = ["Subnet", "sweep", "sweep_through"]
