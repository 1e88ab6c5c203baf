/* Finds PFC deadlocks: switch ports that wait for each other in a circle and will
 * do so for ever.
 *
 *     port e, paused ──▶ its far end q, which holds packets and pauses e until they
 *     leave ──▶ the ports f by which they leave, paused themselves ──▶ ...
 *
 * A set of ports is deadlocked when each is paused with packets waiting, and all
 * that the far end holds waits at ports of the set. The largest such set is found
 * by striking ports out until every one left fulfils it; if any is left, each waits
 * for another in it, so following them leads round a circle. That is told, once.
 *
 * It is a property of the moment, not a guess from time that has passed; a pause that
 * a NIC keeps up is none, however long. Only a watchdog, or a link that goes down,
 * ends it. */
#ifndef EMU_DEADLOCK_H
#define EMU_DEADLOCK_H

#include "switch.h"

enum { DEADLOCKS = 16, DEADLOCK_PORTS = 64 };

struct deadlock {
    picoseconds found_at;
    uint8_t priority;
    uint32_t length;                /* ports in the circle */
    uint32_t ports[DEADLOCK_PORTS]; /* their indices, each waiting for the next */
};

struct fabric;

struct deadlock_watch {
    picoseconds interval; /* between two looks */
    struct timer look;
    uint8_t *in_set; /* by index of port */
    uint32_t count;
    struct deadlock found[DEADLOCKS];
};

/* Set-up only. False when there is no memory. */
bool deadlock_watch_init(struct fabric *fabric, picoseconds interval);
void deadlock_watch_free(struct fabric *fabric);
void deadlock_watch_start(struct fabric *fabric, picoseconds now);

#endif
