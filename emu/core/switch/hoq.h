/* Head-of-queue lifetime: the longest time for which an InfiniBand switch waits for credit (IBTA
 * vol 1, 18.2.5.4; PortInfo HOQLife and VLStallCount).
 *
 *     the first packet of a lane waits for credit
 *         for HOQLife                        the packet is discarded
 *     VLStallCount packets lost in a row     the lane is stalled for 8 HOQLife: all packets that
 *                                            wait or arrive are discarded
 *
 * This is what ends a credit loop. Both kinds of packets are counted as discards of the
 * port. HOQLife is 4.096 us * 2^n. */
#ifndef EMU_SWITCH_HOQ_H
#define EMU_SWITCH_HOQ_H

#include "switch/switch_state.h"

enum { HOQ_STALL_LIVES = 8 };

/* Set-up only. False when there is no memory. */
bool hoq_init(struct switch_port *out, struct arena *arena, const struct hoq_config *config);

/* The first packet of a lane has no credit. */
void hoq_blocked(struct switch_port *out, uint8_t vl, picoseconds now);

/* The first packet of a lane leaves. */
void hoq_moved(struct hoq *hoq, uint8_t vl);

#endif
