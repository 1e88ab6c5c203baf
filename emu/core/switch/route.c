#include "switch/route.h"

#include <stdlib.h>
#include <string.h>

void routes_free(struct routes *routes)
{
    free(routes->table);
    free(routes->changes);
    free(routes->ports);
    *routes = (struct routes){0};
}

/* Makes room for `needed` elements of `size` bytes. A new array has room for twice as many. */
static bool make_room(void **array, uint32_t *room, uint32_t needed, size_t size)
{
    if (needed <= *room)
        return true;
    void *grown = realloc(*array, 2 * needed * size);
    if (!grown)
        return false;
    *array = grown;
    *room = 2 * needed;
    return true;
}

/* Makes the table long enough for a destination. */
static bool reach(struct routes *routes, uint16_t destination)
{
    uint32_t before = routes->destinations;
    if (!make_room((void **)&routes->table, &routes->destinations, destination + 1u,
                   sizeof *routes->table))
        return false;
    if (routes->destinations > before)
        memset(routes->table + before, 0, (routes->destinations - before) * sizeof *routes->table);
    return true;
}

/* The position of a list of ports in the stored ports; `used` when it is not there. */
static uint32_t find(const struct routes *routes, const uint16_t *ports, uint16_t count)
{
    for (uint32_t first = 0; first + count <= routes->used; first++)
        if (memcmp(routes->ports + first, ports, count * sizeof *ports) == 0)
            return first;
    return routes->used;
}

/* Stores a list of ports, each list only once, so that links that flap for days need no more
 * memory. False when there is no memory. */
static bool keep(struct routes *routes, const uint16_t *ports, uint16_t count, struct route *route)
{
    uint32_t first = count && routes->ports ? find(routes, ports, count) : routes->used;
    if (first < routes->used) {
        *route = (struct route){first, count};
        return true;
    }
    if (!make_room((void **)&routes->ports, &routes->room, routes->used + count, sizeof *ports))
        return false;
    if (count)
        memcpy(routes->ports + routes->used, ports, count * sizeof *ports);
    *route = (struct route){routes->used, count};
    routes->used += count;
    return true;
}

bool routes_add(struct routes *routes, const uint16_t *destinations, uint32_t destination_count,
                const uint16_t *ports, uint16_t port_count)
{
    struct route route;
    if (!keep(routes, ports, port_count, &route))
        return false;
    for (uint32_t i = 0; i < destination_count; i++) {
        if (!reach(routes, destinations[i]))
            return false;
        routes->table[destinations[i]] = route;
    }
    return true;
}

/* Removes changes that were made, once they are half of the list. When a link flaps faster than
 * routes converge, the list is never empty. */
static void forget_done(struct routes *routes)
{
    uint32_t left = routes->change_count - routes->changes_done;
    if (!routes->changes_done || routes->changes_done < left)
        return;
    memmove(routes->changes, routes->changes + routes->changes_done,
            left * sizeof *routes->changes);
    routes->change_count = left;
    routes->changes_done = 0;
}

bool routes_add_later(struct routes *routes, picoseconds at, const uint16_t *destinations,
                      uint32_t destination_count, const uint16_t *ports, uint16_t port_count)
{
    struct route_change change = {.at = at};
    forget_done(routes);
    if (!make_room((void **)&routes->changes, &routes->change_room,
                   routes->change_count + destination_count, sizeof change) ||
        !keep(routes, ports, port_count, &change.route))
        return false;
    for (uint32_t i = 0; i < destination_count; i++) {
        change.destination = destinations[i];
        if (!reach(routes, change.destination))
            return false;
        routes->changes[routes->change_count++] = change;
    }
    return true;
}

picoseconds routes_change(struct routes *routes, picoseconds now)
{
    while (routes->changes_done < routes->change_count) {
        const struct route_change *change = &routes->changes[routes->changes_done];
        if (change->at > now)
            return change->at;
        routes->table[change->destination] = change->route;
        routes->changes_done++;
    }
    return NEVER;
}
