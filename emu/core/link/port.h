/* A port and the cable on it: serialisation, propagation, and the flow control that
 * says what may be sent. Switches and NICs have the same ports.
 *
 *      owner                 port                     line              peer port
 *     pull() ──▶ control frames first, then data ──▶ busy ──▶ delay ──▶ receive()
 *
 * A port holds no data queue of its own. When its line falls idle it sends what
 * flow control itself has to say (pause frames, credit updates), and otherwise
 * asks its owner for one more frame. The owner answers from its own queues, for
 * classes that `port_may_send` allows, and calls `port_kick` whenever there may
 * be something new to send; the port calls it when a pause ends or credit comes.
 *
 * Which flow control and which framing a port has are settings of their own (flow_control.h,
 * framing.h).
 *
 * A line is one direction of a cable. Frames keep their order on it. */
#ifndef EMU_LINK_PORT_H
#define EMU_LINK_PORT_H

#include "headers/lrh.h"
#include "link/credit_state.h"
#include "link/flow_control.h"
#include "link/framing.h"
#include "link/pause_state.h"
#include "link/qos_map.h"
#include "link/vlarb.h"
#include "sim/cache_line.h"
#include "sim/frame.h"

struct port;
struct tap;

struct port_handler {
    /* A frame is here: the handler owns it now. `now` is when its last bit is
     * in, or its header for a cut-through receiver (then tail_at is later).
     * Pause frames and flow-control packets end in the port and are not passed. */
    void (*receive)(struct port *port, struct frame *frame, picoseconds now);
    /* The line is idle: the next frame to send, or NULL when there is none for now. */
    struct frame *(*pull)(struct port *port, picoseconds now);
    /* The last bit of a frame that carried `charge` is out. May be NULL. */
    void (*sent)(struct port *port, const struct charge *charge, picoseconds now);
    /* The link is down: nothing that waits for it will leave. May be NULL. */
    void (*link_down)(struct port *port, picoseconds now);
};

/* When the far end gets to see a frame. */
enum delivery {
    DELIVER_TAIL,  /* all of it has arrived: store-and-forward switches, NICs */
    DELIVER_HEAD,  /* its header has arrived: cut-through switches */
    DELIVER_START, /* as its first bit leaves: the far end emulates the cable itself */
};

struct line {
    struct frame_list in_flight; /* due_at: when the far end gets it */
    uint32_t in_flight_count;
    enum delivery delivery;
    picoseconds byte_time; /* 0: no whole number of picoseconds */
    picoseconds delay;
    picoseconds free_at; /* when the last bit of the last frame is out */
    uint64_t rate_bps;
    bool paced; /* who injects keeps to its rate: what finds it busy was held up outside */

    ON_A_LINE struct timer arrival; /* set while a frame is in flight */
    struct port *far;
};

/* How long so many bytes occupy the line. */
static inline picoseconds line_time(const struct line *line, uint32_t bytes)
{
    return line->byte_time ? bytes * line->byte_time : serialisation(bytes, line->rate_bps);
}

/* How late a paced line is with what is injected now. */
static inline picoseconds line_backlog(const struct line *line, picoseconds now)
{
    return line->paced && line->free_at > now ? line->free_at - now : 0;
}

/* What a port counts. The rows of ports.def say what each counter is. */
struct class_counters {
#define PORT_TRAFFIC(name, ...) uint64_t name;
#include "counters/ports.def"
};

struct port_counters {
    struct class_counters of_class[CLASSES];
#define PORT(name, ...) uint64_t name;
#define PORT_PER_PRIORITY(name, ...) uint64_t name[PRIORITIES];
#define PORT_PER_CLASS(name, ...) uint64_t name[CLASSES];
#include "counters/ports.def"
};

/* What a port shows over time: a sample is a copy of this. Those of ports that are sampled
 * stand side by side (sampler.h). */
struct gauges {
    int64_t queued;     /* bytes in its egress queues; 0 at a NIC */
    int64_t held;       /* bytes in the ingress buffer that it fills; 0 at a NIC */
    int64_t tx_wire;    /* bytes sent so far, with preamble, FCS and gap */
    picoseconds paused; /* time the far end kept priorities paused, summed over them; under 802.3x
                         * the link, once */
    picoseconds waited; /* time data waited for credit, summed over VLs */
};

/* Ports whose gauges grow with time, or did when they were last looked at. */
struct stopped_ports {
    struct port *first;
};

/* By lines: what every frame needs, the frame that is being sent, those on the line; then what
 * is seldom needed. */
struct port {
    ON_A_LINE void *owner;
    const struct port_handler *handler;
    struct clock *clock;
    struct frame_pool *pool;
    struct tap *tap; /* NULL: this port is not captured */
    /* Ethernet: priorities of frames that come in; NULL: as sent. */
    const struct qos_map *qos_map;
    struct gauges *gauges; /* never NULL */
    uint16_t number;       /* in its node */
    uint8_t framing;       /* enum framing */
    uint8_t flow_control;  /* enum flow_control_kind */
    uint8_t vls;           /* InfiniBand: data VLs in use, 0 .. vls-1 */
    bool outside;          /* its node is not in this process: all that arrives is passed on */

    ON_A_LINE bool up;
    bool busy;             /* a frame is being sent */
    bool control_to_send;  /* flow control has a frame of its own to send */
    uint16_t stopped;      /* classes with data that flow control does not let go */
    uint16_t stopping;     /* classes that we make the far end stop */
    struct charge sending; /* the charge of the frame that is being sent */
    struct timer done;     /* its last bit is out */

    ON_A_LINE struct line line; /* out of this port */

    uint32_t index; /* in the fabric */
    uint8_t mac[6];
    uint8_t cuts; /* how many faults keep the link down */

    /* Of its flow control. */
    struct pause_state pause;
    ON_A_LINE struct credit_state credit;

    /* Lanes of packets that leave by this port: which one a service level takes,
     * and which one is next. No tables where there is one data VL. */
    uint8_t sl2vl[SLS];
    struct vlarb_tables *vlarb_tables;
    struct vlarb vlarb;

    struct gauges own_gauges;            /* while nobody samples them */
    struct stopped_ports *stopped_ports; /* the list it is to be put on; NULL: none */
    struct port *next_stopped;
    bool is_on_stopped_ports;

    ON_A_LINE struct port_counters counters;
};

static_assert(offsetof(struct port, up) == 1 * CACHE_LINE &&
                  offsetof(struct port, line) == 2 * CACHE_LINE &&
                  offsetof(struct line, arrival) == 1 * CACHE_LINE &&
                  sizeof(struct line) == 2 * CACHE_LINE,
              "a frame's way through a port is four lines");

/* A packet ends here: it is dropped, whoever decides so. At the end of a cable whose node is in
 * another process, the port that it was on its way to counts it. */
void port_count_drop(struct port *port, struct frame *frame);
/* The same of a frame that is too long to be taken into memory: only its headers are there. */
void port_count_oversize(struct port *port, struct frame *frame);

/* Set-up only. */
void port_init(struct port *port, struct clock *clock, struct frame_pool *pool,
               const struct port_handler *handler, void *owner, enum framing framing);

/* What happens at a port over and over: the next frame is at the far end, the last bit of one
 * is out. Known by name to prefetch.h. */
void line_arrival(struct timer *timer, picoseconds now);
void transmission_done(struct timer *timer, picoseconds now);

/* Set-up only: one direction of a cable, from `port` to `far`. */
void port_connect(struct port *port, struct port *far, uint64_t rate_bps, picoseconds delay,
                  enum delivery delivery);

/* Brings the link up; InfiniBand ports advertise their first credits. */
void port_start(struct port *port, picoseconds now);

/* The link is lost, at this end: frames on the line are gone, and what flow control
 * agreed on is forgotten. It comes back when all who took it down let it. */
void port_link_down(struct port *port, picoseconds now);
/* A frame that the link does not carry to its end: it was on the cable, or was to be. */
void port_lose(struct port *port, struct frame *frame);
void port_link_up(struct port *port, picoseconds now);

/* There may be something new to send. Cheap when the line is busy. */
void port_kick(struct port *port, picoseconds now);

static inline const struct link_framing_ops *port_framing(const struct port *port)
{
    return link_framings[port->framing];
}

static inline const struct flow_control_ops *port_flow_control(const struct port *port)
{
    return flow_controls[port->flow_control];
}

/* Set-up only. */
void port_set_flow_control(struct port *port, enum flow_control_kind kind);

/* Whether port_may_send depends on the length. */
static inline bool port_minds_length(const struct port *port)
{
    return port_flow_control(port)->may_send;
}

/* Whether flow control lets a data frame of `length` bytes go now. Where credit
 * is missing, the time until it comes is counted as xmit_wait. */
static inline bool port_may_send(struct port *port, uint8_t tc, uint32_t length, picoseconds now)
{
    const struct flow_control_ops *ops = port_flow_control(port);
    return ops->may_send ? ops->may_send(port, tc, length, now) : !(port->stopped & 1u << tc);
}

/* Whether a class is stopped whatever a frame's length. Does not count. */
static inline bool port_is_paused(const struct port *port, uint8_t tc)
{
    return !port_minds_length(port) && port->stopped & 1u << tc;
}

/* Nothing waits in the class any more, though nothing was sent. */
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

/* Whether flow control keeps count of the buffers that hold what arrives; otherwise the owner's
 * buffers do. */
static inline bool port_has_buffers(const struct port *port)
{
    return port_flow_control(port)->held;
}

/* InfiniBand with several data lanes: whether VL arbitration says which one is next. */
static inline bool port_arbitrates_lanes(const struct port *port)
{
    return port->vls > 1 && port->vlarb_tables;
}

/* Whether a pause of this priority, of whichever kind was agreed on, stops the port. */
static inline bool port_obeys(const struct port *port, uint8_t tc)
{
    return port->pause.obeyed & 1u << tc;
}

/* From now on a priority is sent whatever the far end says; or no longer. */
void port_ignore_pauses(struct port *port, uint8_t priority, bool ignore, picoseconds now);

/* Tells the far end to stop or go on sending a priority. */
void port_pause_peer(struct port *port, uint8_t priority, bool xoff, picoseconds now);

/* A frame arrives from outside the core (a driver's socket), at the port it
 * would have reached by its cable. Takes the frame. */
void port_deliver(struct port *port, struct frame *frame, picoseconds now);

/* Puts a frame onto the port's line as if the owner had sent it, queueing behind what is
 * being sent; the owner's next frame queues behind it. How the far end of a host's cable
 * enters the shim. What queues on a paced line goes faster than its rate: at the rate itself, a
 * sender that never stops would stay late for good. */
void port_inject(struct port *port, struct frame *frame, picoseconds now);

/* A pause or a wait for credit begins: from now on its gauges grow with time. */
void port_stops(struct port *port);

/* Brings all their gauges up to `now`; forgets those that go on again. */
void stopped_ports_settle(struct stopped_ports *stopped, picoseconds now);

/* Brings counters and gauges that grow with time up to `now`. */
static inline void port_settle(struct port *port, picoseconds now)
{
    port_flow_control(port)->count_stops(port, now);
}

#endif
