/* A port of a switch that takes some DSCPs, or PCPs, for other priorities than its neighbours do:
 * packets are buffered, paused, queued and dropped as what they are not. A frame has its priority
 * from when it comes in until it is out (switch.h), so those that are in the switch when the map
 * changes are released where they were charged.
 *
 * What it sees are packets that come in by the port, and hits are those of the priorities to
 * which a code point was moved: others that have always been there count, too. */
#include <string.h>

#include "fault/fault.h"

static uint64_t came_in(const struct fault *fault, uint8_t priorities)
{
    uint64_t packets = 0;
    for (unsigned left = priorities; left; left &= left - 1)
        packets += fault->port->counters.of_class[__builtin_ctz(left)].rx_packets;
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

static uint8_t wrong_priorities(const struct fault *fault)
{
    const struct qos_map *right = fault->healthy_qos_map, *wrong = &fault->qos_map;
    return right->trusts_pcp ? moved(right->of_pcp, wrong->of_pcp, PCPS)
                             : moved(right->of_dscp, wrong->of_dscp, DSCPS);
}

static void begin(struct fault *fault, picoseconds now)
{
    (void)now;
    fault->healthy_qos_map = fault->port->qos_map;
    fault->qos_map = *fault->healthy_qos_map;
    memcpy(fault->qos_map.of_dscp, fault->config.of_dscp, DSCPS);
    memcpy(fault->qos_map.of_pcp, fault->config.of_pcp, PCPS);
    fault->port->qos_map = &fault->qos_map;
    fault->seen_before = came_in(fault, 0xFF);
    fault->before = came_in(fault, wrong_priorities(fault));
}

static void count(struct fault *fault)
{
    fault->counts.packets_seen = came_in(fault, 0xFF) - fault->seen_before;
    fault->counts.hits = came_in(fault, wrong_priorities(fault)) - fault->before;
}

static void end(struct fault *fault, picoseconds now)
{
    (void)now;
    fault->port->qos_map = fault->healthy_qos_map;
}

const struct fault_ops fault_wrong_map = {.begin = begin, .end = end, .count = count, .sets = true};
