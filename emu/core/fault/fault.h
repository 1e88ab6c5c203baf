/* Faults: what goes wrong in a fabric, on purpose, from one moment to another.
 *
 *     kind            where     what it does                                    file
 *     link down       cable     nothing passes, queued packets are discarded    fault_link.c
 *     link flap       cable     the same again and again                        fault_link.c
 *     loss            line      the packets it chooses vanish                   fault_line.c
 *     corruption      line      ... arrive with a wrong check sequence          fault_line.c
 *     duplication     line      ... arrive twice                                fault_line.c
 *     reordering      line      ... arrive later, behind those that follow      fault_line.c
 *     delay           line      all arrive later, in order                      fault_line.c
 *     flow control    line      credit updates vanish or are damaged            fault_line.c
 *     pause storm     NIC       sends pause frames for ever                     fault_storm.c
 *     slow receiver   NIC       takes packets in at a lower rate                fault_slow.c
 *     wrong map       port      takes code points for other priorities          fault_map.c
 *     small headroom  port      a switch's, keeps less headroom than it needs   fault_headroom.c
 *     wrong ECN       port      a switch's, marks by other curves               fault_ecn.c
 *     ignored CNPs    NIC       never slows down                                fault_cnp.c
 *
 * A cable is two lines, one out of each of its ports. A fault has a timer that
 * begins and ends it, and puts itself between the parts it comes between only
 * for that time: a fabric without faults knows nothing of them and loses no
 * time to them. Each draws random numbers of its own, so that it changes
 * nothing but what it hits.
 *
 * The last five are faults of tuning: they change a setting, and at the end put back what
 * was there. Of one kind a port has one at a time: where one begins, another is over.
 * What came in before keeps the priority, and the room, that it was given then. */
#ifndef EMU_FAULT_FAULT_H
#define EMU_FAULT_FAULT_H

#include "fault/fault_api.h"
#include "link/port.h"
#include "nic/rx_throttle.h"
#include "sim/rng.h"
#include "switch/wred.h"

struct fault;

/* All of a fabric's, and what they do to its links. */
struct faults {
    struct fault *first;
    bool links_changed; /* one went down or came back, and nobody has taken note */
    picoseconds links_changed_at;
};

struct fault_ops {
    void (*begin)(struct fault *fault, picoseconds now);
    void (*end)(struct fault *fault, picoseconds now);
    /* Where the kind has such a thing: */
    void (*packet)(struct fault *fault, struct frame *frame, picoseconds now); /* takes it */
    void (*due)(struct fault *fault, picoseconds now); /* `next_step` has come */
    void (*count)(struct fault *fault);                /* brings `counts` up to date */
    bool sets;                                         /* it changes a setting */
};

extern const struct fault_ops fault_link_down, fault_link_flap;
extern const struct fault_ops fault_loss, fault_corruption, fault_duplication, fault_reordering,
    fault_delay, fault_flow_control;
extern const struct fault_ops fault_pause_storm, fault_slow_receiver;
extern const struct fault_ops fault_wrong_map, fault_small_headroom, fault_wrong_ecn,
    fault_ignored_cnps;

struct fault {
    struct fault_config config;
    const struct fault_ops *ops;
    struct faults *all;
    struct port *port; /* the line out of it, or the NIC's own */
    struct port *far;  /* the other end of its cable */
    bool active;
    struct timer window;    /* it begins, then it ends */
    struct timer next_step; /* while it lasts */
    struct fault_counts counts;
    struct fault *next;     /* in the list of all */
    struct frame_list held; /* packets that it lets go later, at their due_at */
    struct rng rng;         /* lines */
    struct port box;        /* lines: stands in the line */
    bool is_down;           /* flapping links: at the moment */
    uint64_t before;        /* what the ports had counted already of what it hits */
    uint64_t seen_before;   /* ... and of what it sees */
    /* What it changes, as it was when it began. */
    struct rx_throttle healthy;
    const struct qos_map *healthy_qos_map;
    struct qos_map qos_map; /* instead of these */
    uint32_t healthy_headroom;
    struct wred healthy_curves[PRIORITIES];
};

/* Lines: the cable is about to be cut, and loses what is held. */
void fault_lose_held(struct fault *fault);

/* A fault on the line out of `port`, or on its cable to `far`. NULL when there is no memory. */
struct fault *fault_add(struct faults *faults, struct port *port, struct port *far,
                        const struct fault_config *config);
void faults_free(struct faults *faults);

#endif
