/* The PFC watchdog: takes a queue out of PFC when the neighbour pauses it without end, because of a
 * faulty NIC or a deadlock. The rules are those of SONiC (doc/pfcwd in its design documents;
 * detection as in its Mellanox plug-in):
 *
 *     detection     in every poll of the detection time the queue held packets, sent
 *                   none, and was paused for more than 99 % of the poll: a storm
 *     during a storm
 *       drop        drops packets of this priority that are in the queue, join it, or arrive at
 *                   the port
 *       forward     the queue sends as if it were not paused
 *       alert       only counts
 *     restoration   no pause of this priority arrived for the restoration time
 *
 * The action begins within detection + poll after the start of the storm.
 *
 * In every poll a switch checks each of its lossless queues (watchdog_look) and carries out the
 * verdict. */
#ifndef EMU_SWITCH_PFC_WATCHDOG_H
#define EMU_SWITCH_PFC_WATCHDOG_H

#include "switch/switch_state.h"

enum watchdog_verdict { WATCHDOG_AS_BEFORE, WATCHDOG_STORM, WATCHDOG_RESTORED };

/* Must be called once in each poll. */
enum watchdog_verdict watchdog_look(struct watchdog_queue *queue,
                                    const struct watchdog_config *config,
                                    const struct watchdog_sight *now);

/* Set-up only. False when there is no memory. */
bool pfc_watchdog_init(struct fabric_switch *sw, struct arena *arena);
void pfc_watchdog_start(struct fabric_switch *sw, picoseconds now);

#endif
