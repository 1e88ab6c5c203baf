/* The virtual lanes of an InfiniBand port: the lane of packets that leave by it, by their service
 * level (sl2vl.h), and the arbitration between lanes (vlarb.h). */
#ifndef EMU_LINK_LANES_H
#define EMU_LINK_LANES_H

#include "headers/lrh.h"
#include "link/vlarb.h"

struct lanes {
    uint8_t sl2vl[SLS];
    struct vlarb_tables tables;
    struct vlarb arbiter;
};

#endif
