/* The queue disciplines of a port: looks them up in the registry and gives them their parameters.
 */
#ifndef EMU_SWITCH_PORT_DISCIPLINES_H
#define EMU_SWITCH_PORT_DISCIPLINES_H

#include "sim/arena.h"
#include "switch/switch_state.h"

/* Set-up only. False when there is no memory, or no such discipline or parameter, or when a
 * parameter has too many values or one that does not fit. `count` is at most PORT_DISCIPLINES. */
bool disciplines_init(struct switch_port *out, struct arena *arena,
                      const struct queue_discipline_config *configs, uint32_t count);

/* The state of a discipline at a port; NULL when the port does not have it. */
void *discipline_state(const struct switch_port *out, const char *name);

#endif
