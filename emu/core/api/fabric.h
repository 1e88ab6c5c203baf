/* A set of switches, NICs and cable ends around one clock: all of a fabric on
 * the virtual clock, or one process' part of it in a live lab. */
#ifndef EMU_API_FABRIC_H
#define EMU_API_FABRIC_H

#include "api/fabric_api.h"
#include "fault/fault.h"
#include "link/tap.h"
#include "observe/deadlock.h"
#include "observe/sampler.h"
#include "sim/rng.h"
#include "switch/switch.h"

/* The end of a cable that leads out of this process. */
struct cable_end {
    struct port port;
    uint64_t backlog_discard; /* frames from outside that found the line's backlog full */
};

struct fabric {
    struct arena arena; /* switches, ports, NICs and all that is theirs from the start */
    struct clock clock;
    struct frame_pool pool;
    struct rng rng;
    struct tap tap;
    struct sampler sampler;
    struct deadlock_watch deadlocks;
    struct port **ports; /* by index; NULL where there is none */
    uint32_t port_count;
    struct fabric_switch **switches;
    uint32_t switch_count;
    struct cable_end **ends;
    uint32_t end_count;
    struct nic **nics;
    uint32_t nic_count;
    struct faults faults;
    uint64_t lossless_dropped; /* packets: no switch's headroom held them */
    /* Where frames go that reach a cable end. Takes the frame. NULL: they are dropped. */
    void (*emit)(void *driver, struct port *end, struct frame *frame, picoseconds now);
    void *driver;
};

/* A frame came from outside at the cable end `index`. Of one that is longer than the pool has room
 * for, only as much as that need be there. */
bool fabric_input(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                  uint32_t length, picoseconds now);

#endif
