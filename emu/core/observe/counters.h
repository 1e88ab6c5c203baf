/* The tables of counters and their values. Plain prototypes, which the binding reads.
 *
 * A port's values are cells in the order of the table, `counter->cells` of each counter. */
#ifndef EMU_OBSERVE_COUNTERS_H
#define EMU_OBSERVE_COUNTERS_H

#include "counters/counter.h"

struct nic;
struct port;

/* The rows of ports.def and nics.def, `count` of them. */
const struct counter *port_counter_table(uint32_t *count);
const struct counter *nic_counter_table(uint32_t *count);

/* Copies all values, as they are at `now_ps`. A port that is no switch's has 0 in a switch's
 * counters. */
void port_counter_cells(struct port *port, int64_t now_ps, int64_t *cells);
void nic_counter_cells(const struct nic *nic, int64_t *cells);

#endif
