/* Queue disciplines: what happens to a frame that is about to join an egress queue, or leaves it.
 *
 *     in this order            discipline     what it does
 *     QUEUE_INSTEAD_OF_DROPS   (none yet)
 *     QUEUE_LIMITS             tail-drop      a full queue drops, unless the frame is lossless
 *                              packet-limit   a queue holds a few packets
 *     QUEUE_MARKS              wred           marks ECN-capable packets by the queue's depth
 *                              fecn           marks InfiniBand packets at the root of congestion
 *
 * A discipline is one file, queue_<name>.c. It enters a struct queue_discipline into the registry
 * queue_disciplines, and keeps its parameters and its state for one port in a struct of its own.
 * Python looks it up by its name and sets its parameters by name.
 *
 * The settings of a port choose the disciplines of each queue. A frame passes them in the order of
 * their phases. A discipline may mark the frame, drop it, or change its class and shorten it. With
 * another class the frame joins the queue of that class. The ingress buffer stays charged with the
 * original length. */
#ifndef EMU_SWITCH_QUEUE_DISCIPLINE_H
#define EMU_SWITCH_QUEUE_DISCIPLINE_H

#include "sim/frame.h"
#include "sim/parameter_field.h"
#include "sim/registry.h"
#include "switch/switch_config.h"

enum queue_phase {
    QUEUE_INSTEAD_OF_DROPS, /* cuts a frame short that would be dropped, or moves it */
    QUEUE_LIMITS,
    QUEUE_MARKS,
};

enum queue_verdict {
    QUEUE_TAKES, /* the next discipline decides, or the frame joins */
    QUEUE_DROPS, /* the reason has been counted */
    QUEUE_MOVES, /* the frame has another class: the disciplines of its new queue decide */
};

struct switch_port;

struct queue_discipline {
    const char *name;
    enum queue_phase phase;
    bool only_lossy; /* never does anything to a frame of a lossless class */
    size_t bytes;    /* size of its own struct */
    const struct parameter_field *parameters; /* in that struct; NULL: none */
    /* The parameters have been set. NULL: nothing to prepare. */
    void (*prepare)(void *state, uint64_t seed);
    /* A frame is about to join a queue of `out`. Counts the reason when it drops the frame. */
    enum queue_verdict (*join)(void *state, struct switch_port *out, uint8_t queue,
                               struct frame *frame);
    /* A frame has left a queue and will be sent. NULL: nothing to do. */
    void (*leave)(void *state, struct switch_port *out, uint8_t queue, struct frame *frame);
};

/* The most disciplines of a port: each queue has a mask of 8 bits for them. */
enum { PORT_DISCIPLINES = 8 };

struct port_discipline {
    const struct queue_discipline *kind;
    void *state;
};

#endif
