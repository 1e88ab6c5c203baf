/* Where a switch sends a packet, when it decides for itself.
 *
 *     Ethernet      destination IPv4 address -> equal-cost ports, one chosen by ECMP
 *     InfiniBand    DLID -> port: the linear forwarding table (LFT) a subnet manager computed
 *
 * Both are one table, indexed by the low 16 bits of the address or by the LID. */
#ifndef EMU_ROUTE_H
#define EMU_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ROUTES = 65536,
    HOST_NETWORK = 10 << 8, /* the high 16 bits of every host's address: 10.0.0.0/16 */
};

struct route {
    uint32_t first; /* in `ports` */
    uint16_t count; /* 0: unreachable */
};

struct routes {
    struct route *table; /* ROUTES of them */
    uint16_t *ports;
    uint32_t used, room;
};

/* Set-up only. False when there is no memory. */
bool routes_init(struct routes *routes);
void routes_free(struct routes *routes);
bool routes_add(struct routes *routes, uint16_t destination, const uint16_t *ports, uint16_t count);

static inline const struct route *routes_find(const struct routes *routes, uint16_t destination)
{
    return &routes->table[destination];
}

#endif
