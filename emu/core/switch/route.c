#include "switch/route.h"

#include <stdlib.h>
#include <string.h>

void routes_free(struct routes *routes)
{
    free(routes->list_of);
    free(routes->lists);
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

/* Makes the table just long enough for all destinations: it grows seldom, and there are many. */
static bool reach(struct routes *routes, const uint16_t *destinations, uint32_t count)
{
    uint32_t before = routes->destinations, needed = before;
    for (uint32_t i = 0; i < count; i++)
        if (destinations[i] >= needed)
            needed = destinations[i] + 1u;
    if (needed == before)
        return true;
    uint16_t *grown = realloc(routes->list_of, needed * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + before, UNREACHABLE, (needed - before) * sizeof *grown);
    routes->list_of = grown;
    routes->destinations = needed;
    return true;
}

static bool is_list(const struct routes *routes, const struct route *list, const uint16_t *ports,
                    uint16_t count)
{
    return list->count == count &&
           (!count || memcmp(routes->ports + list->first, ports, count * sizeof *ports) == 0);
}

static bool append(struct routes *routes, const uint16_t *ports, uint16_t count)
{
    if (routes->list_count == LISTS_MAX ||
        !make_room((void **)&routes->lists, &routes->list_room, routes->list_count + 1,
                   sizeof *routes->lists) ||
        !make_room((void **)&routes->ports, &routes->room, routes->used + count, sizeof *ports))
        return false;
    if (count)
        memcpy(routes->ports + routes->used, ports, count * sizeof *ports);
    routes->lists[routes->list_count++] = (struct route){routes->used, count};
    routes->used += count;
    return true;
}

/* Stores a list of ports, each list only once, so that links that flap for days need no more
 * memory. False when there is no memory. */
static bool keep(struct routes *routes, const uint16_t *ports, uint16_t count, uint16_t *list)
{
    if (!routes->list_count && !append(routes, NULL, 0))
        return false;
    uint32_t place = 0;
    while (place < routes->list_count && !is_list(routes, &routes->lists[place], ports, count))
        place++;
    if (place == routes->list_count && !append(routes, ports, count))
        return false;
    *list = (uint16_t)place;
    return true;
}

bool routes_add(struct routes *routes, const uint16_t *destinations, uint32_t destination_count,
                const uint16_t *ports, uint16_t port_count)
{
    uint16_t list;
    if (!keep(routes, ports, port_count, &list) || !reach(routes, destinations, destination_count))
        return false;
    for (uint32_t i = 0; i < destination_count; i++)
        routes->list_of[destinations[i]] = list;
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

/* The place of a change in the list: behind all that are not later. */
static uint32_t place_at(const struct routes *routes, picoseconds at)
{
    uint32_t place = routes->change_count;
    while (place > routes->changes_done && routes->changes[place - 1].at > at)
        place--;
    return place;
}

bool routes_add_later(struct routes *routes, picoseconds at, const uint16_t *destinations,
                      uint32_t destination_count, const uint16_t *ports, uint16_t port_count)
{
    struct route_change change = {.at = at};
    forget_done(routes);
    if (!make_room((void **)&routes->changes, &routes->change_room,
                   routes->change_count + destination_count, sizeof change) ||
        !keep(routes, ports, port_count, &change.list) ||
        !reach(routes, destinations, destination_count))
        return false;
    uint32_t place = place_at(routes, at);
    memmove(routes->changes + place + destination_count, routes->changes + place,
            (routes->change_count - place) * sizeof change);
    for (uint32_t i = 0; i < destination_count; i++) {
        change.destination = destinations[i];
        routes->changes[place + i] = change;
    }
    routes->change_count += destination_count;
    return true;
}

picoseconds routes_change(struct routes *routes, picoseconds now)
{
    while (routes->changes_done < routes->change_count) {
        const struct route_change *change = &routes->changes[routes->changes_done];
        if (change->at > now)
            return change->at;
        routes->list_of[change->destination] = change->list;
        routes->changes_done++;
    }
    return NEVER;
}
