/* PFC at a switch port: when it pauses the far end, priority by priority (IEEE 802.1Qbb).
 *
 *     XOFF   while headroom is in use: the packets of the priority have reached xoff (buffer.h)
 *     XON    once the headroom is empty and the port holds at most xon bytes of the pool
 *
 * The pause frames themselves are the link's (pauses.h). */
#ifndef EMU_SWITCH_PFC_H
#define EMU_SWITCH_PFC_H

#include "switch/switch_state.h"

static inline bool priority_group_wants_xoff(const struct priority_group *group)
{
    return group->headroom > 0;
}

static inline bool priority_group_wants_xon(const struct priority_group *group,
                                            const struct pfc_config *pfc,
                                            const struct buffer *buffer)
{
    return group->headroom == 0 && (group->shared == 0 || group->shared + pfc->xon_below_xoff <=
                                                              threshold_now(&pfc->xoff, buffer));
}

/* Pauses or resumes the far end if necessary. The packets that the port holds for the priority
 * have changed. */
void pfc_update(struct fabric_switch *sw, struct switch_port *in, uint8_t priority,
                picoseconds now);

#endif
