/* The messages that are being transferred: streams on routes, with max-min fair rates.
 *
 * All streams of a route have the same rate, so a route counts the bytes that each of them has got
 * so far (`served`), and a stream is over when this count has grown by its own bytes.
 *
 * A stream that joins waits for the next solution (max_min.h), and those beside one that has left
 * keep their rates until then. A solution is due at the instant of the change, unless the last
 * ones were costly: then changes may wait, each for `tolerance` of its message's time, so that one
 * solution serves many of them. */
#ifndef EMU_FLOW_MODEL_TRANSFERS_H
#define EMU_FLOW_MODEL_TRANSFERS_H

#include "flow_model/finish_heap.h"
#include "flow_model/max_min.h"

#define NO_MESSAGE UINT32_MAX

struct transfers {
    struct max_min max_min;
    struct finish_heap ends;
    double tolerance;
    picoseconds due; /* of the next solution; NEVER when nothing has changed */

    /* Of each route. */
    double *rate; /* of each of its streams, in bytes per picosecond */
    double *served;
    picoseconds *served_until;
    uint32_t *first; /* its stream that ends first, and by `next` the others in order */

    /* Of each message. */
    double *target;     /* its route's count at its end */
    picoseconds *began; /* its transfer */
    uint32_t *next;     /* on its route, or in the list of those that join */
    uint32_t joining, *last_joining;
    uint32_t *route_of_joining; /* of each message that joins; no route: it has joined */
    uint64_t solutions, entries;
};

bool transfers_init(struct transfers *transfers, const struct flow_network *network,
                    uint32_t messages, double tolerance);
void transfers_free(struct transfers *transfers);

/* A message begins. `alone` is how long it would take without other streams. */
void transfers_begin(struct transfers *transfers, uint32_t message, uint32_t route, double bytes,
                     picoseconds alone, picoseconds now);

/* When something happens next: an end, or a solution that is due. */
picoseconds transfers_next(const struct transfers *transfers);

/* A message that has ended by `now`; NO_MESSAGE: there is none. */
uint32_t transfers_take_ended(struct transfers *transfers, picoseconds now);

/* Works out new rates, if that is due. Returns how many steps that took. */
uint64_t transfers_solve(struct transfers *transfers, picoseconds now);

/* The bytes that a message which has begun still lacks. */
double transfers_left(const struct transfers *transfers, uint32_t message, uint32_t route,
                      picoseconds now);

#endif
