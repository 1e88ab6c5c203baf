/* The settings of a port, as Python sees them: plain declarations, which the binding reads. A port
 * gets all of them when it is made. Sizes are bytes, times emulated picoseconds. */
#ifndef EMU_LINK_PORT_CONFIG_H
#define EMU_LINK_PORT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* The pauses that a port obeys and sends. Only PFC and 802.3x use them. */
struct pause_config {
    uint8_t priorities;  /* PFC: one bit for each */
    int64_t response_ps; /* from the arrival of a pause frame until the port obeys it */
};

/* The receive buffers for which a port grants credit. Only credits use them. */
struct credit_config {
    uint8_t vls;               /* classes 0 .. vls-1 need credit: InfiniBand's data VLs */
    uint8_t width;             /* physical lanes of the link */
    uint32_t buffer_bytes[16]; /* by class */
};

/* VL arbitration (vlarb.h). Without entries, queues are served as those of an Ethernet port. */
struct vlarb_entry {
    uint8_t vl;
    uint8_t weight; /* in VLARB_WEIGHT_UNIT, 64 bytes */
};

struct vlarb_list {
    struct vlarb_entry entries[64];
    uint8_t count;
};

struct vlarb_tables {
    struct vlarb_list high, low;
    uint8_t limit; /* of the high list: in VLARB_LIMIT_UNIT, 4096 bytes */
};

/* The priorities of arriving frames (qos_map.h). Ports with the same map share it, so a switch port
 * or NIC has it beside its port_config. */
struct qos_map {
    bool trusts_pcp;
    uint8_t default_priority;
    uint8_t of_dscp[64];
    uint8_t of_pcp[8];
};

struct port_config {
    uint8_t framing;      /* enum framing */
    uint8_t flow_control; /* enum flow_control_kind */
    uint8_t mac[6];       /* Ethernet */
    struct pause_config pause;
    struct credit_config credit;
    uint8_t sl2vl[16]; /* InfiniBand: the VL on which packets of a service level leave; 15: none */
    struct vlarb_tables vlarb; /* InfiniBand */
};

#endif
