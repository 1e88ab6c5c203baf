#include "observe/sampler.h"

#include <string.h>

static void sampler_due(struct timer *timer, picoseconds now)
{
    struct sampler *sampler = container_of(timer, struct sampler, due);
    sampler_take(sampler, now);
    timer_set_common(sampler->clock, timer, now + sampler->interval);
}

static size_t row_bytes(const struct sampler *sampler)
{
    return (size_t)sampler->columns * sizeof(int64_t);
}

bool sampler_init(struct sampler *sampler, struct arena *arena, struct clock *clock,
                  picoseconds interval, uint32_t capacity, uint32_t port_count,
                  const uint64_t *flows, uint32_t flow_count)
{
    *sampler = (struct sampler){.clock = clock,
                                .interval = interval,
                                .capacity = capacity & ~1u, /* keeps rows evenly spaced */
                                .columns = 1 + port_count * GAUGES + flow_count,
                                .port_count = port_count,
                                .flows = flows,
                                .flow_count = flow_count};
    timer_init(&sampler->due, sampler_due);
    sampler->values = arena_take(arena, sampler->capacity, row_bytes(sampler));
    sampler->places = arena_take(arena, sampler->capacity, sizeof *sampler->places);
    sampler->gauges = arena_take(arena, port_count, sizeof *sampler->gauges);
    if (!sampler->values || !sampler->places || !sampler->gauges)
        return false;
    for (uint32_t row = 0; row < sampler->capacity; row++)
        sampler->places[row] = row;
    return true;
}

void sampler_prefault(struct sampler *sampler)
{
    memset(sampler->values, 0, sampler->capacity * row_bytes(sampler));
}

void sampler_watch(struct sampler *sampler, uint32_t place, struct port *port)
{
    struct gauges *gauges = &sampler->gauges[place];
    *gauges = *port->gauges;
    port->gauges = gauges;
    port->stopped_ports = &sampler->stopped;
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
    return sampler->values + (size_t)sampler->places[row] * sampler->columns;
}

/* The next row comes into the cache while other things happen. */
static void fetch_next(const struct sampler *sampler)
{
    enum { CELLS = CACHE_LINE / sizeof(int64_t) };
    if (sampler->rows == sampler->capacity)
        return;
    const int64_t *row = row_at(sampler, sampler->rows);
    for (uint32_t cell = 0; cell < sampler->columns; cell += CELLS)
        __builtin_prefetch(row + cell, 1);
}

void sampler_take(struct sampler *sampler, picoseconds now)
{
    if (sampler->rows == sampler->capacity)
        halve(sampler);
    int64_t *row = row_at(sampler, sampler->rows++);
    int64_t *of_ports = row + 1, *of_flows = of_ports + sampler->port_count * GAUGES;
    stopped_ports_settle(&sampler->stopped, now);
    *row = now;
    memcpy(of_ports, sampler->gauges, sampler->port_count * sizeof *sampler->gauges);
    if (sampler->flow_count)
        memcpy(of_flows, sampler->flows, sampler->flow_count * sizeof *sampler->flows);
    fetch_next(sampler);
}
