"""InfiniBand's control plane: a real subnet manager decides where packets go.

    Topology ──▶ net file ──▶ ibsim ◀──SMPs──▶ OpenSM ──▶ dump files ──▶ Subnet
                 netfile      ibsim     │      opensm     dumps          subnet
                                     mad_layer   ▲
    Policy ──────────── configuration ───────────┘          all of it: manager

ibsim answers subnet management packets like the fabric's switches and NICs;
it carries no data. OpenSM, the subnet manager of real clusters, discovers that
fabric, gives every port its LIDs and computes each switch's linear forwarding
table (LFT). The emulator's switches follow those tables. In a real host the
kernel waits for answers on OpenSM's behalf; here mad_layer does. OpenSM's
random numbers have one seed (random_seed), so that a sweep can be repeated.

Left out: multicast.
"""
