/* Max-min fair rates of streams over links, worked out anew where something changed.
 *
 * A route is a set of links, and the share of its bytes that crosses each of them: 1 on a single
 * path, 1/4 on each of four equal ports. Streams on a route are alike, so that they all have the
 * same rate. Rates are max-min fair: no stream can get more without taking from one that has no
 * more than itself.
 *
 * Progressive filling: the rates of all streams rise together. When a link is full, the streams
 * that cross it keep their rate, and the others go on. So the links are dealt with in the order of
 * the rate at which each becomes full.
 *
 * A change at one link can reach only routes that share a link with it, directly or through
 * others. max_min_solve works out the rates of these routes alone. */
#ifndef EMU_FLOW_MODEL_MAX_MIN_H
#define EMU_FLOW_MODEL_MAX_MIN_H

#include <stdbool.h>
#include <stdint.h>

#include "flow_model/flow_model_api.h"
#include "sim/clock.h"

/* A link while a solution is worked out. In one piece, since the links of a route are visited
 * again and again, in no order that a processor could foresee. */
struct filling {
    double left;   /* of its rate */
    double weight; /* what the open routes ask for, of each unit of their rate */
    uint32_t open; /* routes without a rate */
    bool is_in;    /* in this solution */
};

/* A route that crosses a link, and by which of its entries. */
struct member {
    uint32_t route, entry;
};

struct full_link {
    double rate; /* of each stream, when the link is full */
    uint32_t link;
};

struct max_min {
    const struct flow_network *network;

    /* Of each route. */
    uint32_t *streams;
    double *rate; /* of each of its streams, in bytes per picosecond */

    /* Of each link: the routes with streams that cross it now. */
    uint32_t *member_first, *member_count;
    struct member *members;
    uint32_t *member_place; /* of each entry, among the members of its link */
    double *load;           /* in bytes per picosecond */
    double *carried;        /* bytes until `carried_until` */
    picoseconds *carried_until;

    /* Links at which something changed since the last solution. */
    uint32_t *changed;
    uint32_t changed_count;
    bool *is_changed;

    /* The last solution: the routes that it covers, and the entries that it visited. */
    uint32_t *routes, route_count;
    double *fresh; /* their new rates, until the caller takes them */
    uint64_t entries;

    /* What a solution needs while it is worked out. */
    uint32_t *links, link_count;
    bool *route_is_in;
    struct filling *filling; /* of each link */
    struct full_link *heap;  /* the first to be full is on top */
    uint32_t heap_count;
};

/* The network stays the caller's. False when there is no memory; free it in any case. */
bool max_min_init(struct max_min *max_min, const struct flow_network *network);
void max_min_free(struct max_min *max_min);

/* A stream joins a route. It has no rate before the next solution. */
void max_min_join(struct max_min *max_min, uint32_t route, picoseconds now);
/* A stream leaves a route. The others keep their rates until the next solution. */
void max_min_leave(struct max_min *max_min, uint32_t route, picoseconds now);

/* Works out the rates of all routes that the changes can reach, into `fresh`. */
void max_min_solve(struct max_min *max_min, picoseconds now);

/* The bytes that a link has carried. */
double max_min_carried(const struct max_min *max_min, uint32_t link, picoseconds now);

#endif
