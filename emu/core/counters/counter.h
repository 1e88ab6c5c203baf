/* A counter: what it counts, its public names, and what a report makes of it.
 *
 * The tables are ports.def and nics.def. A row there is all that a counter needs beside its
 * increment: it makes the field of the struct, and C, bindings, reports and documents read it.
 * The binding reads this header, too. */
#ifndef EMU_COUNTERS_COUNTER_H
#define EMU_COUNTERS_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* Who chose the public name. */
enum counter_source {
    THIS_EMULATOR,
    LINUX_ETHTOOL,     /* the mlx5 driver's */
    LINUX_HW_COUNTERS, /* of RDMA devices */
    IBTA_PMA,          /* InfiniBand's performance management attributes */
    SAI_PORT,
    SONIC_PFCWD,
};

/* Whether the counted packets ended here, and which total of a run counts them. */
enum counter_drop {
    NOT_A_DROP,
    DROP_CONGESTION, /* no room: a lossless or a lossy drop, as the packet's class is */
    DROP_LOSSLESS,   /* of a lossless class, always */
    DROP_WATCHDOG,   /* by the PFC watchdog */
    DROP_OTHER,
};

/* Whose fault a drop is. */
enum counter_fault {
    FAULT_OF_FABRIC,    /* its configuration, its load, or a cable */
    FAULT_OF_INJECTION, /* a fault of the spec; `drops_fault` counts the packet */
    FAULT_OF_SENDER,    /* the packet is wrong */
    FAULT_OF_MACHINE,   /* the machine that emulates lost it; the real fabric would not */
};

struct counter {
    const char *name; /* in the core; NULL: a public name that is computed from other counters */
    /* Public names on each fabric, separated by spaces; N is the priority or VL. Several counters
     * with the same name are added up, and so are the classes when the name has no N. */
    const char *roce, *ib;
    const char *unit;
    int64_t per_unit; /* what one unit is in the core, such as picoseconds; 0: the same */
    const char *meaning;
    const char *event; /* what `emu events` calls an increment; NULL: no event */
    enum counter_source source;
    enum counter_drop drop;
    enum counter_fault fault;
    bool level; /* goes up and down, or is a maximum: the difference of two values says nothing */
    uint32_t cells; /* one per priority or class, or 1; 0: computed */
    /* Where the cells are: in which struct, and how far apart. */
    uint32_t place, offset, stride;
};

#endif
