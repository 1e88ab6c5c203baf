/* Faults: what goes wrong in a fabric, on purpose, from one moment to another.
 *
 * A kind of fault is one file, fault_<kind>.c. It enters a struct fault_ops into the registry
 * fault_kinds, and keeps its parameters and its state in a struct of its own, whose first member is
 * the struct fault that all kinds share. Python looks a kind up by its name, which is its key in a
 * spec, and sets its parameters by name.
 *
 *     target   what is changed                         shared code
 *     cable    both ports of a cable lose the link     link_cut.h
 *     line     one direction of a cable                line_fault.h, packet_choice.h, held_frames.h
 *     port     a setting of a switch's port
 *     NIC      a setting of a host's NIC, or what it sends
 *
 * A timer injects the fault and clears it. The fault changes its target only in between: a fabric
 * without faults spends no time on them. Each fault draws its own random numbers, so that it
 * changes nothing but its target.
 *
 * An exclusive kind changes a setting and restores it when cleared. A port has at most one fault
 * of such a kind at a time: injecting a second one clears the first. Frames already queued keep
 * the priority and the buffer space that they were assigned on arrival. */
#ifndef EMU_FAULT_FAULT_H
#define EMU_FAULT_FAULT_H

#include <stdbool.h>

#include "fault/fault_api.h"
#include "link/port.h"
#include "sim/arena.h"
#include "sim/parameter_field.h"
#include "sim/registry.h"
#include "sim/rng.h"

struct fault;

/* All faults of a fabric. */
struct faults {
    struct fault *first;
    bool links_changed; /* a link went down or came back, and Python has not read it yet */
    picoseconds links_changed_at;
};

struct fault_ops {
    const char *name;                         /* the key in a spec */
    size_t bytes;                             /* size of the kind's own struct */
    const struct parameter_field *parameters; /* in that struct */
    bool exclusive;
    void (*inject)(struct fault *fault, picoseconds now);
    void (*clear)(struct fault *fault, picoseconds now);
    /* Any of these may be NULL. */
    void (*packet)(struct fault *fault, struct frame *frame, picoseconds now); /* line_fault.h */
    void (*count)(struct fault *fault);     /* brings `counts` up to date */
    void (*link_lost)(struct fault *fault); /* the cable is about to lose its link */
};

struct fault {
    const struct fault_ops *ops;
    struct faults *all;
    struct port *port;    /* the port of a switch or NIC; of a line, the port that sends into it */
    struct port *far;     /* the other end of its cable */
    picoseconds duration; /* 0: until it is cleared */
    bool active;
    struct timer window; /* injects the fault, then clears it */
    struct fault_counts counts;
    struct rng rng;
    struct fault *next; /* in the list of all */
};

/* NULL when there is no memory, or when no such kind or parameter exists. */
struct fault *fault_add(struct faults *faults, struct arena *arena, struct port *port,
                        struct port *far, const struct fault_config *config);

#endif
