/* The state of the PFC watchdog in a port of a switch (pfc_watchdog.h). */
#ifndef EMU_SWITCH_PFC_WATCHDOG_STATE_H
#define EMU_SWITCH_PFC_WATCHDOG_STATE_H

#include "link/pause_message.h"

/* The counters of one priority of a port at one poll. */
struct watchdog_sight {
    bool waiting; /* the queue holds packets */
    uint64_t tx_packets, rx_packets, rx_pause;
    picoseconds paused;
};

/* The watchdog state of one priority of a port. */
struct watchdog_queue {
    bool stormed;
    picoseconds stuck, quiet; /* how long it has been stuck, or without pauses, at the last poll */
    struct watchdog_sight last;
};

struct watchdog_counters {
#define WATCHDOG(name, ...) uint64_t name[PRIORITIES];
#include "counters/ports.def"
};

#endif
