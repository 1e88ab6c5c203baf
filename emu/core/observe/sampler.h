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
 * Each part of a fabric (part.h) has a sampler, which fills in the columns of its own ports and
 * flows. All samplers take their rows at the same times, so they agree on the place of each row.
 *
 * The gauges of a sampler's ports are in one array (`gauges`), in the order of the columns. Where
 * columns follow each other in memory and in the row, they are one run, which is copied at once:
 * a row is a few copies. Only stopped ports must be brought up to date one by one. */
#ifndef EMU_OBSERVE_SAMPLER_H
#define EMU_OBSERVE_SAMPLER_H

#include "link/port.h"
#include "sim/arena.h"

enum { GAUGES = sizeof(struct gauges) / sizeof(int64_t) };

/* Cells that are copied from memory into columns of a row. */
struct sampled_run {
    const int64_t *from;
    uint32_t column, cells;
};

struct sample_table {
    uint32_t capacity, columns;
    int64_t *values; /* capacity x columns */
};

struct sampler {
    struct clock *clock;
    struct timer due;
    picoseconds interval;
    struct sample_table table; /* of all samplers of a fabric */
    int64_t time_ps;           /* of the newest row */
    uint32_t rows;
    uint32_t *places; /* of the rows, in order of time; then of those that are free */
    struct gauges *gauges;
    uint32_t gauge_count, run_count;
    struct sampled_run *runs;
    struct stopped_ports stopped;
};

/* Set-up only. An odd `capacity` (at least 2) leaves one row unused. False when there is no
 * memory. */
bool sample_table_init(struct sample_table *table, struct arena *arena, uint32_t capacity,
                       uint32_t columns);
/* Touches the memory of all rows before the first sample. */
void sample_table_prefault(const struct sample_table *table);
/* Set-up only: a sampler that watches up to so many ports and counts. */
bool sampler_init(struct sampler *sampler, struct arena *arena, struct clock *clock,
                  picoseconds interval, struct sample_table table, uint32_t ports, uint32_t counts);
/* Set-up only: a port, or a count that the caller keeps alive, from this column on. */
void sampler_watch(struct sampler *sampler, uint32_t column, struct port *port);
void sampler_watch_count(struct sampler *sampler, uint32_t column, const uint64_t *count);
/* Set-up only: one sampler of all fills in the column of the time. */
void sampler_watch_time(struct sampler *sampler, uint32_t column);
void sampler_start(struct sampler *sampler, picoseconds now);

/* Takes one more row now: the last state of a run. */
void sampler_take(struct sampler *sampler, picoseconds now);

#endif
