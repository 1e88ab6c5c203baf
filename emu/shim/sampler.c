#include "sampler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 };

static void sampler_due(struct timer *timer, picoseconds now)
{
    struct sampler *sampler = container_of(timer, struct sampler, due);
    sampler_take(sampler, now);
    timer_set(sampler->clock, timer, now + sampler->interval);
}

/* Rows are written once, one after the other: in small pages, the faults would take longer than
 * the writing. */
static int64_t *table(size_t cells)
{
    size_t size = (cells * sizeof(int64_t) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    int64_t *values = aligned_alloc(HUGE_PAGE, size);
    if (values)
        madvise(values, size, MADV_HUGEPAGE); /* where there are none, small ones do */
    return values;
}

bool sampler_init(struct sampler *sampler, struct clock *clock, picoseconds interval,
                  uint32_t capacity, uint32_t port_count, const uint64_t *flows,
                  uint32_t flow_count)
{
    *sampler = (struct sampler){.clock = clock,
                                .interval = interval,
                                .capacity = capacity,
                                .columns = 1 + port_count * GAUGES + flow_count,
                                .port_count = port_count,
                                .flows = flows,
                                .flow_count = flow_count};
    timer_init(&sampler->due, sampler_due);
    sampler->values = table((size_t)capacity * sampler->columns);
    sampler->ports = calloc(port_count, sizeof *sampler->ports);
    if (sampler->values && sampler->ports)
        return true;
    sampler_free(sampler);
    return false;
}

void sampler_free(struct sampler *sampler)
{
    free(sampler->values);
    free(sampler->ports);
    sampler->values = NULL;
    sampler->ports = NULL;
}

void sampler_start(struct sampler *sampler, picoseconds now)
{
    timer_set(sampler->clock, &sampler->due, now);
}

static void halve(struct sampler *sampler)
{
    size_t row = sampler->columns * sizeof *sampler->values;
    for (uint32_t kept = 0; 2 * kept < sampler->rows; kept++)
        memmove(sampler->values + (size_t)kept * sampler->columns,
                sampler->values + (size_t)2 * kept * sampler->columns, row);
    sampler->rows = (sampler->rows + 1) / 2;
    sampler->interval *= 2;
}

void sampler_take(struct sampler *sampler, picoseconds now)
{
    if (sampler->rows == sampler->capacity)
        halve(sampler);
    int64_t *cell = sampler->values + (size_t)sampler->rows++ * sampler->columns;
    *cell++ = now;
    for (uint32_t i = 0; i < sampler->port_count; i++, cell += GAUGES) {
        struct port *port = sampler->ports[i];
        port_settle(port, now);
        memcpy(cell, &port->gauges, sizeof port->gauges);
    }
    for (uint32_t i = 0; i < sampler->flow_count; i++)
        *cell++ = (int64_t)sampler->flows[i];
}
