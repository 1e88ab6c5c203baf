/* Wrong map: a port of a switch maps some DSCPs or PCPs to other priorities than its neighbours do,
 * so that packets are buffered, paused, queued and dropped on the wrong priority. A frame keeps the
 * priority of its arrival until it leaves the switch (switch.h): frames that are in the switch
 * when the map changes are released where they were charged.
 *
 * The fault sees every packet that the port receives. Hits are packets on the priorities to which
 * a code point was moved, including those that were on them before. */
#include <string.h>

#include "fault/fault.h"

struct wrong_map {
    struct fault fault;
    uint8_t of_dscp[DSCPS], of_pcp[PCPS]; /* the priority of each code point */
    const struct qos_map *healthy;
    struct qos_map wrong;
    uint64_t received_before, hits_before;
};

static struct wrong_map *map_of(struct fault *fault)
{
    return container_of(fault, struct wrong_map, fault);
}

static uint64_t received(const struct fault *fault, uint8_t priorities)
{
    uint64_t packets = 0;
    for (unsigned left = priorities; left; left &= left - 1)
        packets += fault->port->traffic[__builtin_ctz(left)].rx_packets;
    return packets;
}

/* A bit for each priority to which a code point was moved. */
static uint8_t moved(const uint8_t *from, const uint8_t *to, unsigned code_points)
{
    uint8_t priorities = 0;
    for (unsigned i = 0; i < code_points; i++)
        if (from[i] != to[i])
            priorities |= (uint8_t)(1u << to[i]);
    return priorities;
}

static uint8_t wrong_priorities(const struct wrong_map *map)
{
    const struct qos_map *right = map->healthy, *wrong = &map->wrong;
    return right->trusts_pcp ? moved(right->of_pcp, wrong->of_pcp, PCPS)
                             : moved(right->of_dscp, wrong->of_dscp, DSCPS);
}

static void inject(struct fault *fault, picoseconds now)
{
    (void)now;
    struct wrong_map *map = map_of(fault);
    map->healthy = fault->port->qos_map;
    map->wrong = *map->healthy;
    memcpy(map->wrong.of_dscp, map->of_dscp, DSCPS);
    memcpy(map->wrong.of_pcp, map->of_pcp, PCPS);
    fault->port->qos_map = &map->wrong;
    map->received_before = received(fault, 0xFF);
    map->hits_before = received(fault, wrong_priorities(map));
}

static void count(struct fault *fault)
{
    const struct wrong_map *map = map_of(fault);
    fault->counts.packets_seen = received(fault, 0xFF) - map->received_before;
    fault->counts.hits = received(fault, wrong_priorities(map)) - map->hits_before;
}

static void clear(struct fault *fault, picoseconds now)
{
    (void)now;
    fault->port->qos_map = map_of(fault)->healthy;
}

static const struct parameter_field parameters[] = {
    PARAMETER_ARRAY(wrong_map, of_dscp), PARAMETER_ARRAY(wrong_map, of_pcp), {0}};

static const struct fault_ops wrong_map = {
    .name = "wrong-map",
    .bytes = sizeof(struct wrong_map),
    .parameters = parameters,
    .exclusive = true,
    .inject = inject,
    .clear = clear,
    .count = count,
};

REGISTER(fault_kinds, wrong_map)
