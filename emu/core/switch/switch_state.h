/* The state of a switch and of its ports, which the parts of a switch share (switch.h). */
#ifndef EMU_SWITCH_SWITCH_STATE_H
#define EMU_SWITCH_SWITCH_STATE_H

#include "headers/ipv4.h"
#include "link/port.h"
#include "switch/arbiter.h"
#include "switch/buffer.h"
#include "switch/forwarding.h"
#include "switch/hoq_state.h"
#include "switch/load_balance.h"
#include "switch/pfc_watchdog_state.h"
#include "switch/queue_discipline.h"
#include "switch/route.h"
#include "switch/switch_config.h"
#include "switch/vlans.h"
#include "switch/wred.h"

enum datapath { DATAPATH_OWN, DATAPATH_EXTERNAL };

enum { TRANSIT_SLOTS = 4096, TRANSIT_PORTS = 0xFFF };

/* The counters of a switch port besides those of every port. ports.def describes each. */
struct switch_port_counters {
    struct watchdog_counters watchdog;
#define SWITCH(name, ...) uint64_t name;
#define SWITCH_PER_CLASS(name, ...) uint64_t name[CLASSES];
#include "counters/ports.def"
};

/* The MAC addresses that a router writes into packets for a port. */
struct addresses {
    uint8_t far_mac[6], mac[6];
};

/* After the port: on one cache line the members that every arriving or leaving frame needs; the
 * frames in the switch, and the buffer and queue of each class. What few frames need, or the ports
 * of InfiniBand switches alone, is apart (struct port). */
struct switch_port {
    struct port port;

    ON_A_LINE uint8_t queue_of[CLASSES]; /* by priority or VL */
    uint8_t disciplines_of[CLASSES];     /* by queue: one bit for each element of `discipline` */
    struct pfc_config pfc;
    uint16_t waiting;     /* one bit for each queue with a frame */
    uint16_t stalled;     /* InfiniBand: one bit for each stalled lane (hoq.h) */
    uint8_t only_lossy;   /* the disciplines that leave lossless frames alone */
    uint8_t dropping;     /* one bit for each priority whose packets the watchdog drops */
    bool hoq_is_limited;  /* InfiniBand: packets wait for credit only for so long (`hoq`) */
    bool depth_is_posted; /* an external marker reads `depth` */
    struct arbiter arbiter;

    ON_A_LINE struct frame_list
        pipeline;              /* frames from this port that wait for the end of the latency */
    struct timer pipeline_due; /* set while the pipeline is not empty */
    ON_A_LINE struct priority_group priority_group[CLASSES];
    ON_A_LINE struct frame_queue queue[CLASSES];
    /* In the order in which frames pass them. WRED is none of them if an external marker (eBPF)
     * marks. */
    ON_A_LINE struct port_discipline discipline[PORT_DISCIPLINES];

    struct deficits deficits;
    struct switch_port_counters *counters; /* never NULL */
    uint64_t queue_peak_bytes;             /* of the deepest queue; see egress_queue_note_peak */
    uint32_t *depth; /* for an external marker: the depth that a frame will find in each queue */
    uint32_t coming[CLASSES];        /* for each queue: bytes in the pipelines of all ports */
    struct wred *external_wred;      /* the curves of an external marker; or NULL */
    struct hoq *hoq;                 /* NULL: packets wait for credit without limit */
    struct pkey_filter *pkeys;       /* NULL: it lets packets pass with any P_Key */
    struct watchdog_queue *watchdog; /* by priority; NULL: the switch has no watchdog */
};

static_assert(offsetof(struct switch_port, pipeline) - offsetof(struct switch_port, queue_of) ==
                      CACHE_LINE &&
                  offsetof(struct switch_port, priority_group) -
                          offsetof(struct switch_port, pipeline) ==
                      CACHE_LINE,
              "what every frame needs of a switch port is one line, its pipeline another");

struct fabric_switch {
    struct switch_config config;
    enum datapath datapath;
    picoseconds transit_timeout; /* external datapath: after it a packet counts as lost */
    struct clock *clock;
    struct frame_pool *pool;
    struct buffer buffer;
    struct routes routes;
    struct vlans vlans;
    struct timer reroute;
    struct load_balancer load_balancer;
    struct switch_port *ports;   /* config.ports of them, numbered from 1 */
    struct addresses *addresses; /* by port */
    /* External datapath. `hand_over` must not keep the frame's bytes. */
    void (*hand_over)(void *datapath, struct switch_port *in, const struct frame *frame,
                      picoseconds now);
    /* Reports a loss: a packet handed over at `since` has not come back, or too many are in transit
     * now. */
    void (*lost_in_datapath)(void *datapath, picoseconds since);
    /* Returns when the datapath has given the packet back; emulated time stands still meanwhile. If
     * it gives nothing back, the packet has no egress port. NULL: time does not wait (transit.h).
     */
    void (*await)(void *datapath, struct fabric_switch *sw, const struct frame *frame);
    bool awaits_each; /* the latency of a packet depends on its egress port */
    /* Lets the external marker decide about a frame that is about to join a queue, and returns
     * whether it has marked it. NULL: it marks what passes the datapath, or there is none. */
    bool (*mark)(void *datapath, const struct switch_port *out, uint8_t queue, struct frame *frame);
    void *external_datapath;
    /* Passes a frame on to the control plane, which then owns it (cpu_port.h). NULL: there is none.
     */
    void (*to_cpu)(void *control_plane, struct switch_port *in, struct frame *frame,
                   picoseconds now);
    void *control_plane;
    uint8_t cpu_class; /* the class of what the control plane sends */
    struct frame *transit[TRANSIT_SLOTS];
    uint32_t transit_next, transit_oldest; /* sequence numbers */
    struct timer transit_check;
    struct timer watchdog_poll;
    uint64_t *lossless_dropped; /* count of the fabric: packets that exceeded headroom */
};

static inline struct fabric_switch *switch_of(const struct port *port)
{
    return port->owner;
}

/* The switch port that a port of a switch is part of. */
static inline struct switch_port *switch_port_of(struct port *port)
{
    return container_of(port, struct switch_port, port);
}

static inline struct switch_port *switch_port(struct fabric_switch *sw, uint32_t number)
{
    return &sw->ports[number - 1];
}

#endif
