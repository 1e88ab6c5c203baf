#include "observe/sampler.h"

#include <string.h>

static void sampler_due(struct timer *timer, picoseconds now)
{
    struct sampler *sampler = container_of(timer, struct sampler, due);
    sampler_take(sampler, now);
    timer_set_common(sampler->clock, timer, now + sampler->interval);
}

static size_t row_bytes(const struct sample_table *table)
{
    return (size_t)table->columns * sizeof(int64_t);
}

bool sample_table_init(struct sample_table *table, struct arena *arena, uint32_t capacity,
                       uint32_t columns)
{
    /* An even number of rows keeps them evenly spaced. */
    *table = (struct sample_table){.capacity = capacity & ~1u, .columns = columns};
    table->values = arena_take(arena, table->capacity, row_bytes(table));
    return table->values;
}

bool sampler_init(struct sampler *sampler, struct arena *arena, struct clock *clock,
                  picoseconds interval, struct sample_table table, uint32_t ports, uint32_t counts)
{
    *sampler = (struct sampler){.clock = clock, .interval = interval, .table = table};
    timer_init(&sampler->due, sampler_due);
    sampler->places = arena_take(arena, table.capacity, sizeof *sampler->places);
    sampler->gauges = arena_take(arena, ports, sizeof *sampler->gauges);
    sampler->runs = arena_take(arena, ports + counts + 1, sizeof *sampler->runs);
    if (!sampler->places || !sampler->gauges || !sampler->runs)
        return false;
    for (uint32_t row = 0; row < table.capacity; row++)
        sampler->places[row] = row;
    return true;
}

void sample_table_prefault(const struct sample_table *table)
{
    memset(table->values, 0, table->capacity * row_bytes(table));
}

/* Cells that follow those of the newest run join it. */
static void add_cells(struct sampler *sampler, uint32_t column, const void *from, uint32_t cells)
{
    struct sampled_run *newest = sampler->runs + sampler->run_count - 1;
    if (sampler->run_count && newest->from + newest->cells == from &&
        newest->column + newest->cells == column)
        newest->cells += cells;
    else
        sampler->runs[sampler->run_count++] = (struct sampled_run){from, column, cells};
}

void sampler_watch(struct sampler *sampler, uint32_t column, struct port *port)
{
    struct gauges *gauges = &sampler->gauges[sampler->gauge_count++];
    *gauges = *port->gauges;
    port->gauges = gauges;
    port->stopped_ports = &sampler->stopped;
    add_cells(sampler, column, gauges, GAUGES);
}

void sampler_watch_count(struct sampler *sampler, uint32_t column, const uint64_t *count)
{
    add_cells(sampler, column, count, 1);
}

void sampler_watch_time(struct sampler *sampler, uint32_t column)
{
    add_cells(sampler, column, &sampler->time_ps, 1);
}

void sampler_start(struct sampler *sampler, picoseconds now)
{
    timer_set_common(sampler->clock, &sampler->due, now);
}

static void swap(uint32_t *one, uint32_t *other)
{
    uint32_t kept = *one;
    *one = *other;
    *other = kept;
}

/* Drops every second row, in order of time: the places of those come after the others'. */
static void halve(struct sampler *sampler)
{
    for (uint32_t kept = 1; 2 * kept < sampler->rows; kept++)
        swap(&sampler->places[kept], &sampler->places[2 * kept]);
    sampler->rows = (sampler->rows + 1) / 2;
    sampler->interval *= 2;
}

static int64_t *row_at(const struct sampler *sampler, uint32_t row)
{
    return sampler->table.values + (size_t)sampler->places[row] * sampler->table.columns;
}

static void fetch(const int64_t *row, const struct sampled_run *run)
{
    enum { CELLS = CACHE_LINE / sizeof(int64_t) };
    for (uint32_t cell = 0; cell < run->cells; cell += CELLS)
        __builtin_prefetch(row + run->column + cell, 1);
}

/* The next row comes into the cache while other things happen. */
static void fetch_next(const struct sampler *sampler)
{
    if (sampler->rows == sampler->table.capacity)
        return;
    const int64_t *row = row_at(sampler, sampler->rows);
    for (uint32_t i = 0; i < sampler->run_count; i++)
        fetch(row, &sampler->runs[i]);
}

void sampler_take(struct sampler *sampler, picoseconds now)
{
    if (sampler->rows == sampler->table.capacity)
        halve(sampler);
    int64_t *row = row_at(sampler, sampler->rows++);
    stopped_ports_settle(&sampler->stopped, now);
    sampler->time_ps = now;
    for (uint32_t i = 0; i < sampler->run_count; i++) {
        const struct sampled_run *run = &sampler->runs[i];
        memcpy(row + run->column, run->from, run->cells * sizeof *row);
    }
    fetch_next(sampler);
}
