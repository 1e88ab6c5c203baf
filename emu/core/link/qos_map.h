/* The priority of a frame. The receiving port derives it from the DSCP, or from the PCP of the VLAN
 * tag (802.1Q), depending on which of them it trusts.
 *
 * Frames without that field (no IP header if DSCP is trusted, no tag if PCP is) get
 * `default_priority`. */
#ifndef EMU_LINK_QOS_MAP_H
#define EMU_LINK_QOS_MAP_H

#include "headers/ipv4.h"
#include "headers/ipv6.h"
#include "headers/vlan.h"
#include "link/port_config.h"
#include "sim/frame.h"

enum { DSCPS = 64 };

static_assert(sizeof(((struct qos_map *)0)->of_dscp) == DSCPS &&
                  sizeof(((struct qos_map *)0)->of_pcp) == PCPS,
              "a map has an entry for each DSCP and PCP");

static inline uint8_t class_by_tag(const struct qos_map *map, const struct frame *frame)
{
    bool tagged = frame->stored > VLAN_PCP_OFFSET && vlan_is_tagged(frame->bytes);
    if (!tagged)
        return map->default_priority;
    return map->of_pcp[frame->bytes[VLAN_PCP_OFFSET] >> VLAN_PCP_SHIFT];
}

/* The class of a frame without an IPv4 header, which few have. */
static inline uint8_t class_by_ipv6(const struct qos_map *map, const struct frame *frame)
{
    uint32_t header = ipv6_offset(frame->bytes, frame->stored);
    return header ? map->of_dscp[ipv6_dscp(frame->bytes + header)] : map->default_priority;
}

/* `frame->ip` must be set. */
static inline uint8_t class_of(const struct qos_map *map, const struct frame *frame)
{
    if (map->trusts_pcp)
        return class_by_tag(map, frame);
    return frame->ip ? map->of_dscp[ipv4_dscp(frame->bytes + frame->ip)]
                     : class_by_ipv6(map, frame);
}

#endif
