/* Where a switch sends a packet, when it decides for itself.
 *
 *     Ethernet      destination IPv4 address -> equal-cost ports, one chosen by ECMP
 *     InfiniBand    DLID -> port: the linear forwarding table (LFT) a subnet manager computed;
 *                   behind it, where packets may choose, all ports on a shortest path
 *
 * Both are one table, indexed by the low 16 bits of the address or by the LID. It reaches
 * as far as the largest destination that was ever added: one of 65536 routes in each of
 * several hundred switches takes longer to clear than the rest of their set-up.
 * Routes that hold from a later time on, as after a link was lost and everybody
 * has heard of it, wait in a list. */
#ifndef EMU_SWITCH_ROUTE_H
#define EMU_SWITCH_ROUTE_H

#include "sim/clock.h"

enum { HOST_NETWORK = 10 << 8 /* the high 16 bits of every host's address: 10.0.0.0/16 */ };

struct route {
    uint32_t first; /* in `ports` */
    uint16_t count; /* 0: unreachable */
};

struct route_change {
    picoseconds at;
    uint16_t destination;
    struct route route;
};

struct routes {
    struct route *table;
    uint32_t destinations;        /* in `table`; there is no route to any beyond */
    struct route_change *changes; /* in order of time */
    uint32_t change_count, changes_done, change_room;
    uint16_t *ports;
    uint32_t used, room;
};

void routes_free(struct routes *routes);
/* Set-up only. The same ports for `many` destinations. False when there is no memory. */
bool routes_add(struct routes *routes, const uint16_t *destinations, uint32_t many,
                const uint16_t *ports, uint16_t count);

/* The same from `at` on, which is no earlier than in the call before. */
bool routes_add_later(struct routes *routes, picoseconds at, const uint16_t *destinations,
                      uint32_t many, const uint16_t *ports, uint16_t count);

/* Makes the changes that are due; returns when the next one is, or NEVER. */
picoseconds routes_change(struct routes *routes, picoseconds now);

static inline const struct route *routes_find(const struct routes *routes, uint16_t destination)
{
    static const struct route unreachable;
    return destination < routes->destinations ? &routes->table[destination] : &unreachable;
}

#endif
