/* A switch's watchdogs on their round: every poll each lossless queue is looked at,
 * and its port does what the verdict asks for (watchdog.h). */
#ifndef EMU_PATROL_H
#define EMU_PATROL_H

#include "watchdog.h"

struct fabric_switch;

struct patrol {
    struct watchdog_config config;
    struct timer poll;
};

void patrol_init(struct fabric_switch *sw);
void patrol_start(struct fabric_switch *sw, picoseconds now);

#endif
