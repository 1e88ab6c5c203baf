/* The routes of a switch for forwarding in its own datapath.
 *
 *     Ethernet      destination IPv4 address -> equal-cost ports, one chosen by ECMP
 *     InfiniBand    DLID -> port: the linear forwarding table (LFT) of the subnet manager;
 *                   after it, if packets may choose, all ports on a shortest path
 *
 * Both are one table, indexed by the low 16 bits of the address or by the LID. It has two bytes for
 * each destination: the number of its route, a list of ports. A switch has few different lists, so
 * that the tables of thousands of switches with routes to thousands of hosts stay small. A table is
 * as long as the largest destination that was ever added.
 *
 * Routes that apply from a later time on wait in a list, for example those after a link failure and
 * the convergence of the routing protocol. */
#ifndef EMU_SWITCH_ROUTE_H
#define EMU_SWITCH_ROUTE_H

#include "sim/clock.h"

enum { HOST_NETWORK = 10 << 8 /* the high 16 bits of all host addresses: 10.0.0.0/16 */ };

struct route {
    uint32_t first; /* in `ports` */
    uint16_t count; /* 0: unreachable */
};

enum { UNREACHABLE, LISTS_MAX = 1 << 16 };

struct route_change {
    picoseconds at;
    uint16_t destination, list;
};

struct routes {
    uint16_t *list_of;     /* by destination: a place in `lists`, or UNREACHABLE */
    uint32_t destinations; /* length of `list_of`; larger destinations have no route */
    struct route *lists;   /* each different one once; the first has no ports */
    uint32_t list_count, list_room;
    struct route_change *changes; /* ordered by time */
    uint32_t change_count, changes_done, change_room;
    uint16_t *ports;
    uint32_t used, room;
};

void routes_free(struct routes *routes);
/* Set-up only. Sets the ports of destinations. False when there is no memory, or when the switch
 * would have more than LISTS_MAX different lists of ports. */
bool routes_add(struct routes *routes, const uint16_t *destinations, uint32_t destination_count,
                const uint16_t *ports, uint16_t port_count);

/* The same from time `at` on. Of two changes at the same time the later call counts. */
bool routes_add_later(struct routes *routes, picoseconds at, const uint16_t *destinations,
                      uint32_t destination_count, const uint16_t *ports, uint16_t port_count);

/* Makes the changes that are due. Returns the time of the next one, or NEVER. */
picoseconds routes_change(struct routes *routes, picoseconds now);

static inline const struct route *routes_find(const struct routes *routes, uint16_t destination)
{
    static const struct route unreachable;
    return destination < routes->destinations ? &routes->lists[routes->list_of[destination]]
                                              : &unreachable;
}

#endif
