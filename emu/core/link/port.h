/* A port and the cable on it: serialisation, propagation, and flow control. Switches and NICs have
 * the same ports.
 *
 *      owner                 port                     line              peer port
 *     pull() ──▶ control frames first, then data ──▶ busy ──▶ delay ──▶ receive()
 *
 * A port has no data queue. When its line becomes idle it sends frames of flow control (pause
 * frames, credit updates) first. Then it asks its owner for one frame. The owner answers from its
 * own queues, with a class that `port_may_send` allows. It calls `port_kick` whenever there may be
 * something new to send; the port itself calls `port_kick` when a pause ends or credit arrives.
 *
 * Flow control and framing of a port are separate settings (flow_control.h, framing.h).
 *
 * A line is one direction of a cable. Frames keep their order on it. */
#ifndef EMU_LINK_PORT_H
#define EMU_LINK_PORT_H

#include "link/credit_state.h"
#include "link/flow_control.h"
#include "link/framing.h"
#include "link/lanes.h"
#include "link/pause_state.h"
#include "link/port_config.h"
#include "link/qos_map.h"
#include "sim/arena.h"
#include "sim/cache_line.h"
#include "sim/frame.h"

struct port;
struct tap;

/* A frame on a cable between two parts (part.h). Its places are the ports of the fabric, by index:
 * `struct port *const *`. */
extern const struct mail_kind mail_with_frame;

struct port_handler {
    /* A frame has arrived, and the handler owns it. `now` is the arrival of its last bit, or of its
     * header at a cut-through receiver (then tail_at is later). Frames of flow control end in the
     * port and are not passed on. */
    void (*receive)(struct port *port, struct frame *frame, picoseconds now);
    /* The line is idle. Returns the next frame to send, or NULL when there is none now. */
    struct frame *(*pull)(struct port *port, picoseconds now);
    /* The last bit of a frame with `charge` has left. May be NULL. */
    void (*sent)(struct port *port, const struct charge *charge, picoseconds now);
    /* The link is down. The owner drops the frames that wait for it. May be NULL. */
    void (*link_down)(struct port *port, picoseconds now);
    /* It is back. May be NULL. */
    void (*link_up)(struct port *port, picoseconds now);
    /* A frame begins its way to this port, whose node is in another process (`stands_in`), with
     * all times of its way known. The line keeps the frame. NULL for other ports. */
    void (*departed)(struct port *port, const struct frame *frame, picoseconds start);
};

/* When the far end receives a frame. */
enum delivery {
    DELIVER_TAIL,  /* when all of it has arrived: store-and-forward switches, NICs */
    DELIVER_HEAD,  /* when its header has arrived: cut-through switches */
    DELIVER_START, /* when its first bit leaves: the far end emulates the cable itself */
};

struct line {
    struct frame_list in_flight; /* due_at: when the far end receives it */
    uint32_t in_flight_count;
    uint8_t delivery; /* enum delivery */
    bool paced; /* frames are injected at the line rate: one that finds the line busy was delayed
                   outside */
    uint8_t header_bytes;  /* of a frame, in the framing of the port */
    bool leaves;           /* the far end stands in for a port of another process */
    picoseconds byte_time; /* 0: not a whole number of picoseconds */
    picoseconds delay;
    picoseconds free_at; /* when the last bit of the last frame leaves */
    uint64_t rate_bps;
    struct clock *far_clock; /* the clock at the far end, which may be in another part (part.h):
                              * then frames in flight belong to that part */

    ON_A_LINE struct timer arrival; /* set while a frame is in flight */
    struct port *far;
    uint32_t far_index; /* of the port at the far end of the cable */
    uint16_t cuts;      /* how often its link has been lost so far */
};

/* The time for which `bytes` occupy the line. */
static inline picoseconds line_time(const struct line *line, uint32_t bytes)
{
    return line->byte_time ? bytes * line->byte_time : serialisation(bytes, line->rate_bps);
}

/* The delay of a frame that is injected now, on a paced line. */
static inline picoseconds line_backlog(const struct line *line, picoseconds now)
{
    return line->paced && line->free_at > now ? line->free_at - now : 0;
}

/* The counters of a port; ports.def describes each. Those of each packet are in the port itself, by
 * class; the others are apart. */
struct class_counters {
#define PORT_TRAFFIC(name, ...) uint64_t name;
#include "counters/ports.def"
};

struct port_counters {
#define PORT(name, ...) uint64_t name;
#define PORT_PER_PRIORITY(name, ...) uint64_t name[PRIORITIES];
#define PORT_PER_CLASS(name, ...) uint64_t name[CLASSES];
#include "counters/ports.def"
};

/* The values of a port that are sampled over time. A sample is a copy of them. The gauges of
 * sampled ports lie next to each other (sampler.h). */
struct gauges {
    int64_t queued;     /* bytes in its egress queues; 0 for a NIC */
    int64_t held;       /* bytes in its ingress buffer; 0 for a NIC */
    int64_t tx_wire;    /* bytes sent so far, with preamble, FCS and gap */
    picoseconds paused; /* time for which the far end paused priorities, summed over priorities;
                         * under 802.3x for which it paused the link */
    picoseconds waited; /* time for which data waited for credit, summed over VLs */
};

/* Ports whose gauges grow with time, or did at the last settlement. */
struct stopped_ports {
    struct port *first;
};

/* Ordered by cache lines: the members that every frame needs, the frame that is being sent, the
 * frames on the line, the counters of its class. What few frames need, or the ports of one kind of
 * fabric alone, is apart, so that the ports of a large fabric fill few pages. */
struct port {
    ON_A_LINE void *owner;
    const struct port_handler *handler;
    struct clock *clock;
    struct frame_pool *pool;
    struct tap *tap; /* NULL: this port is not captured */
    /* Ethernet: the priorities of arriving frames; NULL: as the sender set them. */
    const struct qos_map *qos_map;
    struct gauges *gauges; /* never NULL */
    uint16_t number;       /* in its node */
    uint8_t framing;       /* enum framing */
    uint8_t flow_control;  /* enum flow_control_kind */
    uint8_t vls;           /* InfiniBand: data VLs in use, 0 .. vls-1 */
    bool arbitrates_lanes; /* VL arbitration chooses the next lane: several data VLs are in use */
    bool outside;          /* its node is in another process: every arriving frame is passed on */
    bool stands_in;        /* for a port of a process that keeps the same emulated time: it counts
                              what that port would count of what happens on its line */

    ON_A_LINE bool up;
    bool busy;             /* a frame is being sent */
    bool control_to_send;  /* flow control has a frame of its own to send */
    uint16_t stopped;      /* classes with data that flow control does not allow to leave */
    uint16_t stopping;     /* classes that this port has stopped at the far end */
    struct charge sending; /* the charge of the frame that is being sent */
    struct timer done;     /* the last bit of that frame leaves */

    ON_A_LINE struct line line; /* from this port to the far end */
    ON_A_LINE struct class_counters traffic[CLASSES];

    struct credit_state *credit;    /* NULL: its flow control is another */
    struct lanes *lanes;            /* NULL: its framing is not InfiniBand's */
    struct port_counters *counters; /* never NULL */
    uint32_t index;                 /* in the fabric */
    uint8_t mac[6];
    uint8_t cuts; /* how many faults keep the link down */
    bool is_on_stopped_ports;
    struct stopped_ports *stopped_ports; /* the list that it joins when it is stopped; NULL: none */
    struct port *next_stopped;
    struct gauges own_gauges; /* used while the port is not sampled */
    struct pause_state pause;
};

static_assert(offsetof(struct port, up) == 1 * CACHE_LINE &&
                  offsetof(struct port, line) == 2 * CACHE_LINE &&
                  offsetof(struct line, arrival) == 1 * CACHE_LINE &&
                  sizeof(struct line) == 2 * CACHE_LINE,
              "a frame's way through a port is four lines");

/* Counts a packet that is dropped here. If this is the end of a cable to another process, the port
 * that the packet was on its way to counts it. */
void port_count_drop(struct port *port, struct frame *frame);
/* Counts a frame that is too long for memory: only its headers are stored. */
void port_count_oversize(struct port *port, struct frame *frame);

/* Set-up only. False when there is no memory. */
bool port_init(struct port *port, struct arena *arena, struct clock *clock, struct frame_pool *pool,
               const struct port_handler *handler, void *owner, const struct port_config *config);

/* The frequent events of a port: a frame arrives at the far end, and the last bit of a frame
 * leaves. prefetch.h refers to them by name. */
void line_arrival(struct timer *timer, picoseconds now);
void transmission_done(struct timer *timer, picoseconds now);

/* The least time between the decision to send a frame on the line and its arrival. */
picoseconds port_lookahead(const struct port *port);

/* Whether the far end of the cable is in another part of the fabric. */
static inline bool port_is_cut(const struct port *port)
{
    return port->line.far && port->line.far_clock != port->clock;
}

/* Set-up only: one direction of a cable, from `port` to `far`. */
void port_connect(struct port *port, struct port *far, uint64_t rate_bps, picoseconds delay,
                  enum delivery delivery);

/* Brings the link up. Flow control may send its first messages. */
void port_start(struct port *port, picoseconds now);

/* The link goes down at this end: frames on the line are lost, and the state of flow control is
 * reset. Without a link, the port discards what its owner sends, at the rate of its line. The link
 * comes back after one port_link_up for each port_link_down. */
void port_link_down(struct port *port, picoseconds now);
/* Counts and frees a frame that was lost with the link: it was on the cable, or about to be. */
void port_lose(struct port *port, struct frame *frame);
void port_link_up(struct port *port, picoseconds now);

/* A frame is on its way from a port of another process, for which `port` stands in. The frame's
 * times say when it arrives. Takes ownership of the frame. */
void port_on_the_way(struct port *port, struct frame *frame);
/* The other process begins to count losses of the link (struct line, cuts) anew, and so does this
 * one. */
void port_forget_cuts(struct port *port);

/* Sends the next frame if the line is idle and there is one. Cheap when the line is busy. */
void port_kick(struct port *port, picoseconds now);

static inline const struct link_framing_ops *port_framing(const struct port *port)
{
    return link_framings[port->framing];
}

static inline const struct flow_control_ops *port_flow_control(const struct port *port)
{
    return flow_controls[port->flow_control];
}

/* The message of a credit update, in the framing of the port's link; NULL: the frame is none. */
static inline uint8_t *port_credit_update(const struct port *port, const struct frame *frame)
{
    return port_framing(port)->control_message(frame, CONTROL_CREDITS, FLOW_CONTROL_BYTES);
}

/* Whether frames of a class need credit to leave. */
static inline bool port_needs_credit(const struct port *port, uint8_t tc)
{
    return port->credit && tc < port->credit->classes;
}

/* Whether port_may_send depends on the length. */
static inline bool port_minds_length(const struct port *port)
{
    return port_flow_control(port)->may_send;
}

/* Whether flow control allows a data frame of `length` bytes to leave now. If credit is missing,
 * the time until it arrives is counted as xmit_wait. */
static inline bool port_may_send(struct port *port, uint8_t tc, uint32_t length, picoseconds now)
{
    const struct flow_control_ops *ops = port_flow_control(port);
    return ops->may_send ? ops->may_send(port, tc, length, now) : !(port->stopped & 1u << tc);
}

/* Whether a class is stopped regardless of the frame length. Does not start counting. */
static inline bool port_is_paused(const struct port *port, uint8_t tc)
{
    return !port_minds_length(port) && port->stopped & 1u << tc;
}

/* The class has nothing left to send, because its frames were dropped. */
static inline void port_emptied(struct port *port, uint8_t tc, picoseconds now)
{
    const struct flow_control_ops *ops = port_flow_control(port);
    if (ops->emptied)
        ops->emptied(port, tc, now);
}

/* The buffer space of a data frame that arrived here is free again. */
static inline void port_released(struct port *port, uint8_t tc, uint32_t length, picoseconds now)
{
    const struct flow_control_ops *ops = port_flow_control(port);
    if (ops->released)
        ops->released(port, tc, length, now);
}

/* Whether flow control accounts for the buffers of arriving frames. Otherwise the owner of the port
 * does. */
static inline bool port_has_buffers(const struct port *port)
{
    return port_flow_control(port)->held;
}

/* Whether a pause of this priority stops the port, be it PFC or 802.3x. */
static inline bool port_obeys(const struct port *port, uint8_t tc)
{
    return port->pause.obeyed & 1u << tc;
}

/* Delivers a frame at the port that it reaches by its cable. Takes ownership of the frame. Drivers
 * call it for frames that come from outside the core. */
void port_deliver(struct port *port, struct frame *frame, picoseconds now);

/* Puts a frame on the port's line as if the owner had sent it: after the frame that is being sent,
 * and before the owner's next frame. Frames from another process enter the core in this way. A
 * paced line sends delayed frames faster than its rate, since a sender that never stops would
 * otherwise stay late for ever. */
void port_inject(struct port *port, struct frame *frame, picoseconds now);

/* A pause or a wait for credit begins, so that the gauges of the port grow with time. */
void port_stops(struct port *port);

/* Brings the gauges of all listed ports up to `now`, and removes ports that are no longer stopped.
 */
void stopped_ports_settle(struct stopped_ports *stopped, picoseconds now);

/* The time after which the port's credit updates repeat themselves; 0: it sends none. */
static inline picoseconds port_upkeep_period(const struct port *port)
{
    const struct flow_control_ops *ops = port_flow_control(port);
    return ops->upkeep_period ? ops->upkeep_period(port) : 0;
}

/* Part of fabric_skip. */
void port_skip(struct port *port, picoseconds span);

/* Brings counters and gauges that grow with time up to `now`. */
static inline void port_settle(struct port *port, picoseconds now)
{
    port_flow_control(port)->count_stops(port, now);
}

#endif
