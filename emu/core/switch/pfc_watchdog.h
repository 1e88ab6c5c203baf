/* The PFC watchdog: takes a queue out of PFC when the neighbour pauses it without
 * end, because of a NIC gone mad or of a deadlock. The rules are SONiC's
 * (doc/pfcwd in its design documents; detection as its Mellanox plug-in does it):
 *
 *     detection     in every poll of the detection time the queue held packets, sent
 *                   none, and was paused for more than 99 % of the poll: a storm
 *     while stormed
 *       drop        what is in the queue, joins it, or comes in by the port on this
 *                   priority is dropped
 *       forward     the queue sends as if it were not paused
 *       alert       nothing is done but counting
 *     restoration   no pause of this priority came in for the restoration time
 *
 * So a storm is acted on within detection + poll.
 *
 * Every poll a switch looks at each of its lossless queues (watchdog_look), and the port does
 * what the verdict asks for. */
#ifndef EMU_SWITCH_PFC_WATCHDOG_H
#define EMU_SWITCH_PFC_WATCHDOG_H

#include "link/pause.h"

enum watchdog_action { WATCHDOG_OFF, WATCHDOG_DROP, WATCHDOG_FORWARD, WATCHDOG_ALERT };

struct watchdog_config {
    enum watchdog_action action;
    picoseconds detection, restoration, poll;
};

/* What a port has counted of one priority so far. */
struct watchdog_sight {
    bool waiting; /* there are packets in the queue */
    uint64_t tx_packets, rx_packets, rx_pause;
    picoseconds paused;
};

/* One priority of a port. */
struct watchdog_queue {
    bool stormed;
    picoseconds stuck, quiet; /* for how long, up to the last poll */
    struct watchdog_sight last;
};

struct watchdog_counters {
#define WATCHDOG(name, ...) uint64_t name[PRIORITIES];
#include "counters/ports.def"
};

enum watchdog_verdict { WATCHDOG_AS_BEFORE, WATCHDOG_STORM, WATCHDOG_RESTORED };

/* To be asked once in a poll. */
enum watchdog_verdict watchdog_look(struct watchdog_queue *queue,
                                    const struct watchdog_config *config,
                                    const struct watchdog_sight *now);

struct fabric_switch;

struct pfc_watchdog {
    struct watchdog_config config;
    struct timer poll;
};

void pfc_watchdog_init(struct fabric_switch *sw);
void pfc_watchdog_start(struct fabric_switch *sw, picoseconds now);

#endif
