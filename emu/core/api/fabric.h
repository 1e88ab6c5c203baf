/* A set of switches, NICs and cable ends with one clock: the whole fabric on the virtual clock, or
 * the part of one process in a lab. */
#ifndef EMU_API_FABRIC_H
#define EMU_API_FABRIC_H

#include "api/fabric_api.h"
#include "fault/fault.h"
#include "link/tap.h"
#include "observe/deadlock.h"
#include "observe/sampler.h"
#include "sim/rng.h"
#include "switch/switch.h"

/* The end of a cable whose node is in another process. */
struct cable_end {
    struct port port;
    uint64_t backlog_discard; /* frames from outside that were dropped: too many waited */
};

struct fabric {
    struct arena arena; /* memory for switches, ports, NICs and their initial state */
    struct clock clock;
    struct frame_pool pool;
    struct rng rng;
    struct tap tap;
    struct sampler sampler;
    struct deadlock_watch deadlocks;
    struct port **ports; /* by index; NULL: no port */
    uint32_t port_count;
    struct fabric_switch **switches;
    uint32_t switch_count;
    struct cable_end **ends;
    uint32_t end_count;
    struct nic **nics;
    uint32_t nic_count;
    struct faults faults;
    uint64_t lossless_dropped; /* packets that exceeded the headroom of a switch */
    /* Sends a frame that has reached a cable end, and takes ownership of it. NULL: frames are
     * dropped. */
    void (*emit)(void *driver, struct port *end, struct frame *frame, picoseconds now);
    void *driver;
};

/* A frame came from outside at the cable end `index`. False when the frame was dropped. If it is
 * longer than a frame of the pool, only so many bytes have to be stored at `bytes`. */
bool fabric_input(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                  uint32_t length, picoseconds now);

#endif
