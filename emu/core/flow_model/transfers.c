#include "flow_model/transfers.h"

#include <math.h>
#include <stdlib.h>

#define NO_ROUTE UINT32_MAX

#define EXACT_SLACK 1e-10

enum {
    CHEAP_ENTRIES = 4096,      /* a solution that visits fewer is worth no waiting */
    REVERSE_MATTERS_LESS = 64, /* than the transfers themselves */
};

static void *array(uint64_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

bool transfers_init(struct transfers *transfers, const struct flow_network *network,
                    uint32_t messages, double tolerance)
{
    *transfers = (struct transfers){.tolerance = tolerance, .due = NEVER, .joining = NO_MESSAGE};
    transfers->last_joining = &transfers->joining;
    double slack = tolerance > 0 ? tolerance / REVERSE_MATTERS_LESS : EXACT_SLACK;
    bool ready = max_min_init(&transfers->max_min, network, slack);
    ready &= finish_heap_init(&transfers->ends, network->routes);
    transfers->rate = array(network->routes, sizeof *transfers->rate);
    transfers->served = array(network->routes, sizeof *transfers->served);
    transfers->served_until = array(network->routes, sizeof *transfers->served_until);
    transfers->first = array(network->routes, sizeof *transfers->first);
    transfers->target = array(messages, sizeof *transfers->target);
    transfers->began = array(messages, sizeof *transfers->began);
    transfers->next = array(messages, sizeof *transfers->next);
    transfers->route_of_joining = array(messages, sizeof *transfers->route_of_joining);
    if (!ready || !transfers->rate || !transfers->served || !transfers->served_until ||
        !transfers->first || !transfers->target || !transfers->began || !transfers->next ||
        !transfers->route_of_joining)
        return false;
    for (uint32_t route = 0; route < network->routes; route++)
        transfers->first[route] = NO_MESSAGE;
    return true;
}

void transfers_free(struct transfers *transfers)
{
    max_min_free(&transfers->max_min);
    finish_heap_free(&transfers->ends);
    free(transfers->rate);
    free(transfers->served);
    free(transfers->served_until);
    free(transfers->first);
    free(transfers->target);
    free(transfers->began);
    free(transfers->next);
    free(transfers->route_of_joining);
    *transfers = (struct transfers){0};
}

static double served(const struct transfers *transfers, uint32_t route, picoseconds now)
{
    double time = (double)(now - transfers->served_until[route]);
    return transfers->served[route] + transfers->rate[route] * time;
}

/* Brings the count of a route up to date, before its rate changes. */
static void count_served(struct transfers *transfers, uint32_t route, picoseconds now)
{
    transfers->served[route] = served(transfers, route, now);
    transfers->served_until[route] = now;
}

/* When the first stream of a route ends, at the present rate, in whole picoseconds; NEVER: it has
 * no stream. Without a rate, the end is too far away to be reached. */
static picoseconds end_of(const struct transfers *transfers, uint32_t route)
{
    double rate = transfers->rate[route];
    uint32_t first = transfers->first[route];
    if (first == NO_MESSAGE)
        return NEVER;
    double left = transfers->target[first] - transfers->served[route];
    double time = left > 0 ? nearbyint(left / rate) : 0;
    picoseconds since = transfers->served_until[route];
    return time < (double)(NEVER - since) / 2 ? since + (picoseconds)time : NEVER - 1;
}

static void set_due(struct transfers *transfers, picoseconds time, picoseconds now)
{
    bool is_cheap = transfers->max_min.entries < CHEAP_ENTRIES;
    picoseconds wait = is_cheap ? 0 : (picoseconds)(transfers->tolerance * (double)time);
    if (now + wait < transfers->due)
        transfers->due = now + wait;
}

void transfers_begin(struct transfers *transfers, uint32_t message, uint32_t route, double bytes,
                     picoseconds alone, picoseconds now)
{
    transfers->began[message] = now;
    transfers->target[message] = bytes;
    transfers->route_of_joining[message] = route;
    transfers->next[message] = NO_MESSAGE;
    *transfers->last_joining = message;
    transfers->last_joining = &transfers->next[message];
    set_due(transfers, alone, now);
}

/* Puts a stream among those of its route, the one that ends first at the head. A route without
 * streams counts from zero, so that no digits are lost. */
static void join(struct transfers *transfers, uint32_t message, uint32_t route, picoseconds now)
{
    if (transfers->first[route] == NO_MESSAGE) {
        transfers->served[route] = 0;
        transfers->served_until[route] = now;
    }
    transfers->target[message] += served(transfers, route, now);
    uint32_t *place = &transfers->first[route];
    while (*place != NO_MESSAGE && transfers->target[*place] <= transfers->target[message])
        place = &transfers->next[*place];
    transfers->next[message] = *place;
    *place = message;
    transfers->route_of_joining[message] = NO_ROUTE;
    max_min_join(&transfers->max_min, route, now);
}

static void join_all(struct transfers *transfers, picoseconds now)
{
    uint32_t next = transfers->joining;
    transfers->joining = NO_MESSAGE;
    transfers->last_joining = &transfers->joining;
    for (uint32_t message; (message = next) != NO_MESSAGE;) {
        next = transfers->next[message];
        join(transfers, message, transfers->route_of_joining[message], now);
    }
}

picoseconds transfers_next(const struct transfers *transfers)
{
    picoseconds end = finish_heap_next(&transfers->ends);
    return end < transfers->due ? end : transfers->due;
}

uint32_t transfers_take_ended(struct transfers *transfers, picoseconds now)
{
    if (finish_heap_next(&transfers->ends) > now)
        return NO_MESSAGE;
    uint32_t route = transfers->ends.first[0].route, message = transfers->first[route];
    count_served(transfers, route, now);
    transfers->first[route] = transfers->next[message];
    max_min_leave(&transfers->max_min, route, now);
    finish_heap_set(&transfers->ends, route, end_of(transfers, route));
    set_due(transfers, now - transfers->began[message], now);
    return message;
}

/* Gives a route its new rate. Returns when its first stream ends. */
static picoseconds take_rate(struct transfers *transfers, uint32_t route, picoseconds now)
{
    const struct max_min *max_min = &transfers->max_min;
    if (max_min->route[route].rate != transfers->rate[route]) {
        count_served(transfers, route, now);
        transfers->rate[route] = max_min->route[route].rate;
    }
    return end_of(transfers, route);
}

static void take_rates(struct transfers *transfers, picoseconds now)
{
    const struct max_min *max_min = &transfers->max_min;
    bool are_many = max_min->route_count > transfers->ends.count / 8;
    for (uint32_t i = 0; i < max_min->route_count; i++) {
        uint32_t route = max_min->routes[i];
        picoseconds end = take_rate(transfers, route, now);
        if (are_many)
            finish_heap_put(&transfers->ends, route, end);
        else
            finish_heap_set(&transfers->ends, route, end);
    }
    if (are_many)
        finish_heap_sort(&transfers->ends);
}

uint64_t transfers_solve(struct transfers *transfers, picoseconds now)
{
    if (transfers->due > now)
        return 0;
    transfers->due = NEVER;
    join_all(transfers, now);
    max_min_solve(&transfers->max_min, now);
    take_rates(transfers, now);
    transfers->solutions++;
    transfers->entries += transfers->max_min.entries;
    return transfers->max_min.entries;
}

double transfers_left(const struct transfers *transfers, uint32_t message, uint32_t route,
                      picoseconds now)
{
    bool waits = transfers->route_of_joining[message] != NO_ROUTE;
    return transfers->target[message] - (waits ? 0 : served(transfers, route, now));
}
