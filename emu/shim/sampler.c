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
    sampler->board = calloc(port_count, sizeof *sampler->board);
    if (sampler->values && sampler->board)
        return true;
    sampler_free(sampler);
    return false;
}

void sampler_free(struct sampler *sampler)
{
    free(sampler->values);
    free(sampler->board);
    sampler->values = NULL;
    sampler->board = NULL;
}

void sampler_watch(struct sampler *sampler, uint32_t place, struct port *port)
{
    struct gauges *gauges = &sampler->board[place];
    *gauges = *port->gauges;
    port->gauges = gauges;
    port->stopped = &sampler->stopped;
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
    int64_t *row = sampler->values + (size_t)sampler->rows++ * sampler->columns;
    int64_t *of_ports = row + 1, *of_flows = of_ports + sampler->port_count * GAUGES;
    stopped_ports_settle(&sampler->stopped, now);
    *row = now;
    memcpy(of_ports, sampler->board, sampler->port_count * sizeof *sampler->board);
    if (sampler->flow_count)
        memcpy(of_flows, sampler->flows, sampler->flow_count * sizeof *sampler->flows);
}
