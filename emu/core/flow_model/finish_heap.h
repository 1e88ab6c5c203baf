/* The routes with streams, by the time at which the next of their streams is transferred. The
 * times change whenever rates do, so the heap knows the place of each route. */
#ifndef EMU_FLOW_MODEL_FINISH_HEAP_H
#define EMU_FLOW_MODEL_FINISH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/clock.h"

struct finish {
    picoseconds at;
    uint32_t route;
};

struct finish_heap {
    struct finish *first; /* the earliest; of equal ones that of the lowest number */
    uint32_t *place;      /* of each route */
    uint32_t count;
};

bool finish_heap_init(struct finish_heap *heap, uint32_t routes);
void finish_heap_free(struct finish_heap *heap);

/* The time of a route; NEVER takes it out of the heap. */
void finish_heap_set(struct finish_heap *heap, uint32_t route, picoseconds at);

/* The same for many routes at once: the heap is out of order until it is sorted. */
void finish_heap_put(struct finish_heap *heap, uint32_t route, picoseconds at);
void finish_heap_sort(struct finish_heap *heap);

bool finish_heap_has(const struct finish_heap *heap, uint32_t route);

static inline picoseconds finish_heap_next(const struct finish_heap *heap)
{
    return heap->count ? heap->first[0].at : NEVER;
}

#endif
