/* Congestion marks of InfiniBand switches: the FECN bit of the BTH (IBTA vol 1, A10).
 *
 * A port whose queue for a lane exceeds a threshold is the root of congestion if it has credit to
 * send, and a victim if it waits for credit. Roots mark packets. Victims mark only if configured
 * to, as on ports to hosts: behind a host that receives slowly there is no other root.
 *
 *     threshold      15: marks from the smallest queue on; 1: from a queue that nearly fills
 *                    the buffer of its lane
 *     marking rate   packets that pass unmarked between two marks
 *     packet size    smaller packets are never marked, nor are raw packets, which have no BTH
 *
 * The ICRC does not cover FECN; the VCRC is renewed. */
#ifndef EMU_SWITCH_FECN_H
#define EMU_SWITCH_FECN_H

#include "link/port.h"

struct fecn {
    uint32_t threshold[CLASSES]; /* bytes in the queue of a lane; 0: packets of the lane are never
                                    marked */
    uint16_t marking_rate;
    uint16_t packet_size; /* bytes */
    bool marks_as_victim;
    uint16_t unmarked[CLASSES]; /* packets of a lane since the last mark */
    uint64_t marked[CLASSES];
};

/* Marks a packet if it must. It joins the queue of its lane at a port, behind `queued` bytes. */
void fecn_see(struct fecn *fecn, const struct port *out, struct frame *frame, uint64_t queued);

#endif
