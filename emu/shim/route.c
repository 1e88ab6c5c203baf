#include "route.h"

#include <stdlib.h>
#include <string.h>

bool routes_init(struct routes *routes)
{
    *routes = (struct routes){.table = calloc(ROUTES, sizeof *routes->table)};
    return routes->table != NULL;
}

void routes_free(struct routes *routes)
{
    free(routes->table);
    free(routes->ports);
    *routes = (struct routes){0};
}

bool routes_add(struct routes *routes, uint16_t destination, const uint16_t *ports, uint16_t count)
{
    if (routes->used + count > routes->room) {
        uint32_t room = 2 * (routes->used + count);
        uint16_t *grown = realloc(routes->ports, room * sizeof *grown);
        if (!grown)
            return false;
        routes->ports = grown;
        routes->room = room;
    }
    memcpy(routes->ports + routes->used, ports, count * sizeof *ports);
    routes->table[destination] = (struct route){routes->used, count};
    routes->used += count;
    return true;
}
