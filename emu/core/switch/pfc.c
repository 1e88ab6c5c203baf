#include "switch/pfc.h"

#include "link/pauses.h"

void pfc_update(struct fabric_switch *sw, struct switch_port *in, uint8_t priority, picoseconds now)
{
    const struct priority_group *held = &in->priority_group[priority];
    bool xoff = in->port.stopping & 1u << priority;
    bool changes = xoff ? priority_group_wants_xon(held, &in->pfc, &sw->buffer)
                        : priority_group_wants_xoff(held);
    if (changes)
        port_pause_peer(&in->port, priority, !xoff, now);
}
