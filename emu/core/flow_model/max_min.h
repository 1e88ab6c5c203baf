/* Max-min fair rates of streams over links, worked out anew where something changed.
 *
 * A route is a set of links, and the share of its bytes that crosses each of them: 1 on a single
 * path, 1/4 on each of four equal ports. Streams on a route are alike, so that they all have the
 * same rate. Rates are max-min fair: no stream can get more without taking from one that has no
 * more than itself.
 *
 * Progressive filling: the rates of all streams rise together. When a link is full, the streams
 * that cross it keep their rate, which is the link's level, and the others go on. So the links are
 * dealt with in the order of their levels, and the rate of a stream is the lowest level of its
 * links.
 *
 * A solution begins with the routes that a change concerns: those that streams have joined, and
 * those that were held by a link where something changed. It fills their links, and the rates of
 * all other routes stay as they are. The result is max-min fair if
 *
 *  - no route that stayed has more than the level of a link at which others were stopped, and
 *  - each link that held routes which stayed is still full, and no stream on it has more than they.
 *
 * Where this does not hold, the routes that stayed there are worked out as well, until it holds
 * everywhere. A link that is not full passes no change on.
 *
 * Streams cause packets in the other direction: acknowledgements, requests of READs. These are few,
 * so a full link does not hold them: the streams on it share what they leave. A link leaves room
 * for them, at most half of its rate. When their load has changed by more than `slack` of the
 * link's rate, the link's room is revised, and its streams get new rates. */
#ifndef EMU_FLOW_MODEL_MAX_MIN_H
#define EMU_FLOW_MODEL_MAX_MIN_H

#include <stdbool.h>
#include <stdint.h>

#include "flow_model/flow_model_api.h"
#include "sim/clock.h"

/* A link while a solution is worked out. In one piece, since the links of a route are visited
 * again and again, in no order that a processor could foresee. */
struct filling {
    double left;     /* of its rate */
    double weight;   /* what the open routes ask for, of each unit of their rate */
    double highest;  /* the rate of any route in this solution */
    double level;    /* at which it stopped routes of this solution; NO_LEVEL: it stopped none */
    uint32_t open;   /* routes without a rate */
    uint32_t free;   /* routes in this solution */
    uint32_t first;  /* of the entries of these routes */
    bool is_in;      /* in this solution */
    bool is_revised; /* in the list `revised` */
};

/* An entry of a route in the solution, in the list of its link. */
struct crossing {
    uint32_t route, next;
};

/* A route that crosses a link, and by which of its entries. */
struct member {
    uint32_t route, entry;
};

struct full_link {
    double level;
    uint32_t link;
};

/* A route, and what becomes of it in a solution: it stays out of it, or it is open until it gets a
 * rate. */
struct route {
    double rate, new_rate; /* of each of its streams, in bytes per picosecond */
    uint32_t streams;
    uint32_t holder, new_holder; /* the link that holds it; NO_LINK: none yet */
    enum { ROUTE_STAYS, ROUTE_OPEN, ROUTE_FILLED } state;
};

struct max_min {
    const struct flow_network *network;
    double slack;
    struct route *route;
    uint32_t active; /* routes with streams */

    /* Of each link: the routes with streams that cross it now. */
    uint32_t *member_first, *member_count;
    struct member *members;
    uint32_t *member_place; /* of each entry, among the members of its link */

    /* Of each link. Rates in bytes per picosecond. */
    double *level;        /* no stream on it has more; NO_LEVEL: it holds none */
    double *load;         /* of streams */
    double *reverse_load; /* of what streams cause in the other direction */
    double *room;         /* that it leaves for this */
    double *carried;      /* bytes until `carried_until` */
    picoseconds *carried_until;

    /* Links at which something changed since the last solution. */
    uint32_t *changed, changed_count;
    bool *is_changed;

    /* The routes of the last solution, until the first change after it; from then on, those of the
     * next one. And the entries that the last one visited. */
    uint32_t *routes, route_count;
    bool is_over;
    uint64_t entries;

    /* What a solution needs while it is worked out. */
    uint32_t *links, link_count;
    struct filling *filling;   /* of each link */
    struct crossing *crossing; /* of each entry */
    struct full_link *heap;    /* the first to be full is on top */
    uint32_t heap_count;
    uint32_t *revised, revised_count; /* links with another reverse load */
};

/* The network stays the caller's. False when there is no memory; free it in any case. */
bool max_min_init(struct max_min *max_min, const struct flow_network *network, double slack);
void max_min_free(struct max_min *max_min);

/* A stream joins a route. It has no rate before the next solution, which must come before any
 * stream leaves. */
void max_min_join(struct max_min *max_min, uint32_t route, picoseconds now);
/* A stream leaves a route. The others keep their rates until the next solution. */
void max_min_leave(struct max_min *max_min, uint32_t route, picoseconds now);

/* Works out the rates of all routes that the changes concern: `routes`, and perhaps some whose rate
 * stays the same. */
void max_min_solve(struct max_min *max_min, picoseconds now);

/* The bytes that a link has carried. */
double max_min_carried(const struct max_min *max_min, uint32_t link, picoseconds now);

#endif
