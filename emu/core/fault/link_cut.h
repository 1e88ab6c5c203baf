/* Both ports of a cable lose the link at the same instant (port_link_down), as after a pulled plug.
 *
 * The fault counts the packets that were on the cable, those that waited for it in switches, and
 * those that were sent to it while it was down. */
#ifndef EMU_FAULT_LINK_CUT_H
#define EMU_FAULT_LINK_CUT_H

#include "fault/fault.h"

/* The first member of the struct of such a kind. */
struct link_cut {
    struct fault fault;
    uint64_t counted; /* packets that the ports had discarded when last read */
};

/* Before the first cut: packets that were discarded until now are not this fault's. */
void link_cut_init(struct fault *fault);
void link_cut_down(struct fault *fault, picoseconds now);
void link_cut_up(struct fault *fault, picoseconds now);
void link_cut_count(struct fault *fault);

#endif
