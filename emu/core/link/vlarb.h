/* VL arbitration: which virtual lane an InfiniBand port serves next (IBTA vol 1, 7.6.9).
 *
 *     VL15        before all other lanes: management packets never wait
 *     high list   (VL, weight), (VL, weight), ...     round robin, weights in 64 bytes
 *     low list    the same; served when the high list has nothing to send, or has
 *                 sent its limit: limit * 4096 bytes, 0 one packet, 255 no limit
 *
 * An entry keeps its turn until its weight is used up; its last packet may be larger than the
 * remaining weight. An entry without a packet, or without credit for it, loses its turn. A lane may
 * be in both lists, and several times in each. An entry with weight 0 is skipped.
 *
 * The subnet manager writes the tables to a port (struct vlarb_tables in port_config.h). */
#ifndef EMU_LINK_VLARB_H
#define EMU_LINK_VLARB_H

#include "link/port_config.h"

enum {
    VLARB_WEIGHT_UNIT = 64,  /* bytes */
    VLARB_LIMIT_UNIT = 4096, /* bytes */
    VLARB_UNLIMITED = 255,
    VL_MANAGEMENT = 15,
    VL_NONE = 16,
};

/* The entry whose turn it is in one list. */
struct vlarb_turn {
    uint8_t entry;
    int32_t left; /* bytes of its weight; 0 or less: the turn is over */
};

struct vlarb {
    struct vlarb_turn high, low;
    struct vlarb_turn *served; /* the list that the last pick came from; NULL: VL15 */
    int64_t high_left;         /* bytes until the low list is served */
};

/* Set-up only: the high list begins. */
void vlarb_init(struct vlarb *arbiter, const struct vlarb_tables *tables);

/* `sendable` has one bit for each lane with a packet that may leave now. Returns a lane, or VL_NONE
 * when no list has one of them. */
uint8_t vlarb_pick(struct vlarb *arbiter, const struct vlarb_tables *tables, uint16_t sendable);

/* The lane of the last pick sends a packet of `bytes`. */
void vlarb_sent(struct vlarb *arbiter, uint32_t bytes);

#endif
