"""BGP, the control plane of Ethernet fabrics: what FRR's daemons decide for a fabric's switches.

emu.subnet has the same for InfiniBand, whose subnet manager is OpenSM.
"""
