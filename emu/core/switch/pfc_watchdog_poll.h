/* A switch's watchdogs on their round: every poll each lossless queue is looked at,
 * and its port does what the verdict asks for (pfc_watchdog.h). */
#ifndef EMU_SWITCH_PFC_WATCHDOG_POLL_H
#define EMU_SWITCH_PFC_WATCHDOG_POLL_H

#include "switch/pfc_watchdog.h"

struct fabric_switch;

struct pfc_watchdog {
    struct watchdog_config config;
    struct timer poll;
};

void pfc_watchdog_init(struct fabric_switch *sw);
void pfc_watchdog_start(struct fabric_switch *sw, picoseconds now);

#endif
