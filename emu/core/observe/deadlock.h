/* Finds deadlocks: loops of switch ports that wait for each other for ever. With PFC a port waits
 * because it is paused; with InfiniBand's credits, because it has none.
 *
 *     port e, stopped ──▶ its far end q, which holds packets and lets e send when they
 *     leave ──▶ the ports f by which they leave, stopped themselves ──▶ ...
 *
 * A set of ports, each with a priority or a lane, is deadlocked if each member has packets waiting
 * and may not send, and if all packets that its far end holds for it wait at members of the set.
 * The search starts with all stopped ports and strikes out members until every one left fulfils
 * this. If any is left, each waits for another member, so following them leads round a loop. Each
 * loop is reported once.
 *
 * PFC: a priority is the same at every hop, so each priority is searched separately. InfiniBand: a
 * packet may change its lane from hop to hop, so all lanes are searched together.
 *
 * A deadlock is a property of the present state, not a guess from elapsed time. A pause that a NIC
 * keeps up is no deadlock, however long it lasts. Only a watchdog, a head-of-queue lifetime or a
 * link failure ends a deadlock.
 *
 * A search walks the queue of each member once, to note the ports at which its packets came in, and
 * once more when the member is struck out. In a congested fabric, searches are frequent. */
#ifndef EMU_OBSERVE_DEADLOCK_H
#define EMU_OBSERVE_DEADLOCK_H

#include "switch/switch.h"

enum { DEADLOCKS = 16, DEADLOCK_PORTS = 64 };

/* A port of a switch, by index, and the priority or lane on which it may not send. */
struct stuck {
    uint32_t index;
    uint8_t tc;
};

struct deadlock {
    picoseconds found_at;
    uint8_t priority;               /* or lane, of the first port */
    uint32_t length;                /* ports in the loop */
    uint32_t ports[DEADLOCK_PORTS]; /* their indices, each waiting for the next */
};

struct deadlock_watch {
    /* Of a fabric, by index; NULL where there is none. Of ports that other processes run, those at
     * the far ends of own ports stand in. */
    struct port *const *ports;
    uint32_t port_count;
    picoseconds interval;  /* between two searches */
    picoseconds next_look; /* NEVER: no search is wanted, or none has begun */
    uint16_t *in_set;      /* by index of port: a bit for each priority or lane */
    /* Bytes that wait at members, by the index of their ingress port and their class there. */
    uint64_t (*waiting)[CLASSES];
    /* Several processes: whether this one runs a port; the set before members were struck out; and
     * by index and class, the length of the first packet that waits there (0: none may), later the
     * member for which the member waits, as such a place and 1. */
    bool *own; /* NULL: one process runs all */
    uint16_t *before;
    uint32_t *places;
    uint32_t count;
    struct deadlock found[DEADLOCKS];
};

/* Set-up only. False when there is no memory. */
bool deadlock_watch_init(struct deadlock_watch *watch, struct port *const *ports,
                         uint32_t port_count, picoseconds interval);
void deadlock_watch_free(struct deadlock_watch *watch);
void deadlock_watch_start(struct deadlock_watch *watch, picoseconds now);

/* Where several processes run the ports, each looks at its own, and they combine what they see:
 *
 *     classes        bits of all, 1 << CLASSES for lanes         or
 *     for each priority, or all lanes together:
 *       heads        places                                      or
 *       begin        in_set                                      or
 *       count
 *       strike       in_set                                      and
 *       struck       and again from strike, if any was
 *       follow       places                                      or
 *       report
 */
bool deadlock_watch_share(struct deadlock_watch *watch, bool *own); /* frees `own` */
uint32_t deadlock_watch_classes(const struct deadlock_watch *watch);
void deadlock_watch_heads(struct deadlock_watch *watch, uint16_t classes);
void deadlock_watch_begin(struct deadlock_watch *watch);
void deadlock_watch_count(struct deadlock_watch *watch);
void deadlock_watch_strike(struct deadlock_watch *watch);
bool deadlock_watch_struck(struct deadlock_watch *watch);
void deadlock_watch_follow(struct deadlock_watch *watch);
void deadlock_watch_report(struct deadlock_watch *watch, picoseconds now);

/* Searches at `now`, which is the time of the next look. All nodes must stand just before it. */
void deadlock_watch_look(struct deadlock_watch *watch, picoseconds now);

#endif
