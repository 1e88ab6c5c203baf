/* Finds deadlocks: switch ports that wait for each other in a circle and will do so for ever.
 * By PFC a port waits because it is paused, by InfiniBand's credits because it has none.
 *
 *     port e, stopped ──▶ its far end q, which holds packets and lets e send when they
 *     leave ──▶ the ports f by which they leave, stopped themselves ──▶ ...
 *
 * A set of ports, each with a priority or a lane, is deadlocked when each has packets waiting and
 * may not send, and all that the far end holds for it waits at members of the set. The largest
 * such set is found by striking out members until every one left fulfils it; if any is left,
 * each waits for another in it, so following them leads round a circle. That is reported, once.
 *
 * A priority is the same at every hop, and each is looked at by itself. A packet may change its
 * lane from hop to hop, so lanes are looked at together.
 *
 * It is a property of the moment, not a guess from time that has passed; a pause that
 * a NIC keeps up is none, however long. Only a watchdog, a lifetime at the head of the queue, or
 * a link that goes down ends it.
 *
 * A look walks through the queue of each member once, to note where what waits there came in, and
 * once more when it is struck out: a congested fabric is looked at all the time. */
#ifndef EMU_OBSERVE_DEADLOCK_H
#define EMU_OBSERVE_DEADLOCK_H

#include "switch/switch.h"

enum { DEADLOCKS = 16, DEADLOCK_PORTS = 64 };

/* A port of a switch, and the priority or lane by which it may not send. */
struct stuck {
    const struct switch_port *port;
    uint8_t tc;
};

struct deadlock {
    picoseconds found_at;
    uint8_t priority;               /* or lane, of the first port */
    uint32_t length;                /* ports in the circle */
    uint32_t ports[DEADLOCK_PORTS]; /* their indices, each waiting for the next */
};

struct deadlock_watch {
    struct clock *clock;
    struct port *const *ports; /* of a fabric, by index; NULL where there is none */
    uint32_t port_count;
    picoseconds interval; /* between two looks */
    struct timer look;
    uint16_t *in_set; /* by index of port: a bit for each priority or lane */
    /* Bytes that wait at members, by index of the port that they came in by, and class there. */
    uint64_t (*waiting)[CLASSES];
    uint32_t count;
    struct deadlock found[DEADLOCKS];
};

/* Set-up only. False when there is no memory. */
bool deadlock_watch_init(struct deadlock_watch *watch, struct clock *clock,
                         struct port *const *ports, uint32_t port_count, picoseconds interval);
void deadlock_watch_free(struct deadlock_watch *watch);
void deadlock_watch_start(struct deadlock_watch *watch, picoseconds now);

#endif
