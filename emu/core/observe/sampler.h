/* Samples over time, the data of the plots.
 *
 * One row every `interval`, into memory that is reserved beforehand. When it
 * is full, every second row is dropped and the interval doubled, so that a run
 * of any length fits and ends with between half and all of the rows.
 *
 *     row:  time_ps | per port: its gauges | per flow: bytes
 *
 * Rows stay where they were written; a new one takes the place of one that was dropped.
 *
 * The gauges of all ports are in one array of the sampler (`gauges`), in the order of the columns,
 * so a row is a copy of that array. Only stopped ports must be brought up to date one by one. */
#ifndef EMU_OBSERVE_SAMPLER_H
#define EMU_OBSERVE_SAMPLER_H

#include "link/port.h"
#include "sim/arena.h"

enum { GAUGES = sizeof(struct gauges) / sizeof(int64_t) };

struct sampler {
    struct clock *clock;
    struct timer due;
    picoseconds interval;
    uint32_t rows, capacity, columns;
    int64_t *values;  /* capacity x columns */
    uint32_t *places; /* of the rows, in order of time; then of those that are free */
    uint32_t port_count, flow_count;
    struct gauges *gauges; /* of all ports */
    struct stopped_ports stopped;
    const uint64_t *flows; /* bytes delivered, per flow */
};

/* Set-up only; the caller keeps `flows` alive, and hands in the ports one by one. An odd `capacity`
 * (at least 2) leaves one row unused. False when there is no memory. */
bool sampler_init(struct sampler *sampler, struct arena *arena, struct clock *clock,
                  picoseconds interval, uint32_t capacity, uint32_t port_count,
                  const uint64_t *flows, uint32_t flow_count);
void sampler_watch(struct sampler *sampler, uint32_t place, struct port *port);
/* Touches the memory of all rows before the first sample. */
void sampler_prefault(struct sampler *sampler);
void sampler_start(struct sampler *sampler, picoseconds now);

/* Takes one more row now: the last state of a run. */
void sampler_take(struct sampler *sampler, picoseconds now);

#endif
