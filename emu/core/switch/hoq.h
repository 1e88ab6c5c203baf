/* Head-of-queue lifetime: an InfiniBand switch does not wait for credit for ever
 * (IBTA vol 1, 18.2.5.4; PortInfo HOQLife and VLStallCount).
 *
 *     a packet is first in its lane and finds no credit
 *         for HOQLife                        it is discarded
 *     VLStallCount packets in a row ended so  the lane is stalled for 8 HOQLife:
 *                                            all that waits or comes is discarded
 *
 * That is what dissolves a credit loop at last. Both are counted as discards of
 * the port. HOQLife is 4.096 us * 2^n. */
#ifndef EMU_SWITCH_HOQ_H
#define EMU_SWITCH_HOQ_H

#include <stdbool.h>

#include "sim/clock.h"
#include "sim/frame.h"

enum { HOQ_STALL_LIVES = 8 };

struct hoq {
    picoseconds life;           /* 0: packets wait for ever */
    uint8_t stall_count;        /* 0: a lane never stalls */
    uint16_t blocked;           /* bit per lane whose first packet found no credit... */
    uint16_t stalled;           /* bit per lane that is stalled */
    uint8_t discarded[CLASSES]; /* in a row */
    picoseconds due[CLASSES];   /* ...and when its time, or the stall, is over */
    struct timer timer;
};

struct switch_port;

void hoq_init(struct hoq *hoq);

/* The first packet of a lane finds no credit. */
void hoq_blocked(struct switch_port *out, uint8_t vl, picoseconds now);

/* A lane's first packet leaves. */
void hoq_moved(struct hoq *hoq, uint8_t vl);

#endif
