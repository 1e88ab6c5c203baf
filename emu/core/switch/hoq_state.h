/* The head-of-queue lifetimes of a port's lanes (hoq.h). */
#ifndef EMU_SWITCH_HOQ_STATE_H
#define EMU_SWITCH_HOQ_STATE_H

#include "sim/clock.h"
#include "sim/frame.h"
#include "switch/switch_config.h"

struct switch_port;

struct hoq {
    struct switch_port *port;
    struct hoq_config config;
    uint16_t blocked;           /* one bit for each lane whose first packet waits for credit */
    uint8_t discarded[CLASSES]; /* in a row */
    picoseconds due[CLASSES];   /* the end of the lifetime, or of the stall */
    struct timer timer;
};

#endif
