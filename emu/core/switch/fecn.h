/* Congestion marks of InfiniBand switches: the FECN bit of the BTH (IBTA vol 1, A10).
 *
 * A port that a lane's packets queue up for beyond a threshold is the root of
 * congestion if it could send them, and only a victim if it waits for credit
 * itself. Roots mark; victims do where they are told to, as on ports to hosts: a
 * host that takes packets in slowly has no root behind it.
 *
 *     threshold      of 15: marks from the smallest queue on; of 1: from a queue that nearly fills
 *                    the buffer of its lane
 *     marking rate   packets that pass unmarked between two marks
 *     packet size    smaller packets are never marked, nor are raw ones, which have no BTH
 *
 * FECN is outside of the ICRC; the VCRC is renewed. */
#ifndef EMU_SWITCH_FECN_H
#define EMU_SWITCH_FECN_H

#include "link/port.h"

struct fecn {
    uint32_t threshold[CLASSES]; /* bytes in the queue of a lane; 0: it never marks */
    uint16_t marking_rate;
    uint16_t packet_size; /* bytes */
    bool marks_as_victim;
    uint16_t unmarked[CLASSES]; /* packets of a lane since the last mark */
    uint64_t marked[CLASSES];
};

/* A packet joins the queue of its lane at a port, behind `queued` bytes. */
void fecn_see(struct fecn *fecn, const struct port *out, struct frame *frame, uint64_t queued);

#endif
