/* A switch: one model for both fabrics.
 *
 *   port ─▶ ingress buffer ─▶ own tables ──────────▶ latency ─▶ egress queue ─▶ port
 *           PFC or credits    or Open vSwitch                   drop, mark, arbiter
 *           ingress.h         forwarding.h,          pipeline.h egress.h, queue_discipline.h
 *                             transit.h
 *
 * Forwarding has two datapaths. In its own datapath the switch looks the packet up
 * and rewrites it as a router does. In the external datapath it hands the packet to
 * whoever decides (Open vSwitch), and takes it back.
 *
 * A frame is charged and paused by its priority (`qos_map.h`, of the ingress port);
 * the egress port serves, marks and drops by queue, which its `queue_of` tells.
 *
 * Left out: cell granularity of the buffer, several pools, multicast. */
#ifndef EMU_SWITCH_SWITCH_H
#define EMU_SWITCH_SWITCH_H

#include "headers/ipv4.h"
#include "link/port.h"
#include "sim/arena.h"
#include "switch/arbiter.h"
#include "switch/buffer.h"
#include "switch/fecn.h"
#include "switch/forwarding.h"
#include "switch/hoq.h"
#include "switch/load_balance.h"
#include "switch/pfc_watchdog.h"
#include "switch/pkey.h"
#include "switch/queue_discipline.h"
#include "switch/route.h"
#include "switch/wred.h"

enum datapath { DATAPATH_OWN, DATAPATH_EXTERNAL };

enum { TRANSIT_SLOTS = 4096, TRANSIT_PORTS = 0xFFF };

struct switch_config {
    enum framing framing; /* of its ports */
    enum forwarding forwarding;
    enum datapath datapath;
    picoseconds latency; /* from last bit in (cut-through: header in) to egress queue */
    bool cut_through;
    uint32_t ports;
    struct threshold lossy; /* of an egress queue of a lossy class */
    /* Queues, a bit each, that drop by the threshold, and those that hold a few packets. */
    uint16_t tail_drop, packet_limit;
    struct arbiter_config arbiter;
    bool hints;                  /* external datapath: the transit tag names the next hop */
    picoseconds transit_timeout; /* external datapath: then a packet counts as lost */
};

/* What a switch's port counts beside every port. The rows of ports.def say what each counter is. */
struct switch_port_counters {
    struct watchdog_counters watchdog;
#define SWITCH(name, ...) uint64_t name;
#define SWITCH_PER_CLASS(name, ...) uint64_t name[CLASSES];
#include "counters/ports.def"
};

/* What a router writes in front of a packet that leaves by a port. */
struct addresses {
    uint8_t far_mac[6], mac[6];
};

/* After the port: what every frame needs that comes in or leaves, on one line; the frames
 * inside; then what is seldom needed. */
struct switch_port {
    struct port port;

    ON_A_LINE uint8_t queue_of[CLASSES]; /* by priority or VL */
    uint32_t
        *depth; /* its row of somebody's depth board, by queue: what a frame will find; or NULL */
    uint64_t queue_peak_bytes;
    struct pfc pfc;
    uint16_t waiting; /* bit per queue with a frame in it */
    /* Bit per queue that has the discipline. WRED: none where somebody outside (eBPF) marks. */
    uint16_t disciplined[QUEUE_DISCIPLINES];
    uint8_t dropping; /* bit per priority that the watchdog has dropped */

    ON_A_LINE struct frame_list pipeline; /* came in here and wait out the latency */
    struct timer pipeline_due;            /* set while there are any */
    ON_A_LINE struct priority_group priority_group[CLASSES];
    ON_A_LINE struct frame_queue queue[CLASSES];

    uint32_t coming[CLASSES]; /* by queue: bytes that wait out the latency, wherever they came in */
    struct arbiter arbiter;
    struct wred wred[CLASSES];  /* by queue */
    bool marks_at_dequeue;      /* WRED */
    struct wred *external_wred; /* the same where eBPF may mark; or NULL */
    struct qos_map qos_map;
    struct hoq hoq;           /* InfiniBand */
    struct fecn fecn;         /* InfiniBand */
    struct pkey_filter pkeys; /* InfiniBand */
    struct watchdog_queue watchdog[PRIORITIES];
    struct switch_port_counters counters;
};

static_assert(offsetof(struct switch_port, pipeline) - offsetof(struct switch_port, queue_of) ==
                      CACHE_LINE &&
                  offsetof(struct switch_port, priority_group) -
                          offsetof(struct switch_port, pipeline) ==
                      CACHE_LINE,
              "what every frame needs of a switch port is one line, its pipeline another");

struct fabric_switch {
    struct switch_config config;
    struct clock *clock;
    struct frame_pool *pool;
    struct buffer buffer;
    struct routes routes;
    struct timer reroute;
    struct load_balancer load_balancer;
    uint16_t balanced_sls;       /* InfiniBand */
    struct switch_port *ports;   /* config.ports of them, numbered from 1 */
    struct addresses *addresses; /* by port, close together */
    /* External datapath. `hand_over` may not keep the frame's bytes. */
    void (*hand_over)(void *datapath, struct switch_port *in, const struct frame *frame,
                      picoseconds now);
    /* What was handed over at `since` has not come back, or found no room beside others now. */
    void (*lost_in_datapath)(void *datapath, picoseconds since);
    void *external_datapath;
    struct frame *transit[TRANSIT_SLOTS];
    uint32_t transit_next, transit_oldest; /* sequence numbers */
    struct timer transit_check;
    struct pfc_watchdog pfc_watchdog;
    uint64_t *lossless_dropped; /* packets, of the fabric: headroom did not hold them */
};

/* Set-up only. False when there is no memory. */
bool switch_init(struct fabric_switch *sw, struct arena *arena, struct clock *clock,
                 struct frame_pool *pool, const struct switch_config *config);
void switch_free(struct fabric_switch *sw);
void switch_start(struct fabric_switch *sw, picoseconds now);

static inline struct fabric_switch *switch_of(const struct port *port)
{
    return port->owner;
}

/* The switch port that a switch's port is part of. */
static inline struct switch_port *switch_port_of(struct port *port)
{
    return container_of(port, struct switch_port, port);
}

static inline struct switch_port *switch_port(struct fabric_switch *sw, uint32_t number)
{
    return &sw->ports[number - 1];
}

/* The switch port a port is part of; NULL when it is a NIC's or outside. */
const struct switch_port *port_of_switch(const struct port *port);

#endif
