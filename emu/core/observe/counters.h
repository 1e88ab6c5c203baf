/* The counters of a port, as Python sees them: plain prototypes, read by the binding as they stand
 * here. There are `counter_count` of them, each with `counter_width` cells (one per class, or 1),
 * `counter_cells` cells in all. */
#ifndef EMU_OBSERVE_COUNTERS_H
#define EMU_OBSERVE_COUNTERS_H

#include <stdint.h>

struct port;

uint32_t counter_count(void);
const char *counter_name(uint32_t counter);
uint32_t counter_width(uint32_t counter);
uint32_t counter_cells(void);
void port_counters(struct port *port, int64_t now_ps, int64_t *cells);

#endif
