#include "flow_model/finish_heap.h"

#include <stdlib.h>

#define NO_PLACE UINT32_MAX

bool finish_heap_init(struct finish_heap *heap, uint32_t routes)
{
    size_t count = routes ? routes : 1;
    *heap = (struct finish_heap){.first = malloc(count * sizeof *heap->first),
                                 .place = malloc(count * sizeof *heap->place)};
    if (!heap->first || !heap->place)
        return false;
    for (uint32_t route = 0; route < routes; route++)
        heap->place[route] = NO_PLACE;
    return true;
}

void finish_heap_free(struct finish_heap *heap)
{
    free(heap->first);
    free(heap->place);
    *heap = (struct finish_heap){0};
}

bool finish_heap_has(const struct finish_heap *heap, uint32_t route)
{
    return heap->place[route] != NO_PLACE;
}

static bool before(struct finish one, struct finish other)
{
    return one.at != other.at ? one.at < other.at : one.route < other.route;
}

static void put(struct finish_heap *heap, uint32_t place, struct finish finish)
{
    heap->first[place] = finish;
    heap->place[finish.route] = place;
}

static void sift_up(struct finish_heap *heap, uint32_t place)
{
    struct finish moved = heap->first[place];
    for (; place > 0 && before(moved, heap->first[(place - 1) / 2]); place = (place - 1) / 2)
        put(heap, place, heap->first[(place - 1) / 2]);
    put(heap, place, moved);
}

static void sift_down(struct finish_heap *heap, uint32_t place)
{
    struct finish moved = heap->first[place];
    for (uint32_t child; (child = 2 * place + 1) < heap->count; place = child) {
        if (child + 1 < heap->count && before(heap->first[child + 1], heap->first[child]))
            child++;
        if (!before(heap->first[child], moved))
            break;
        put(heap, place, heap->first[child]);
    }
    put(heap, place, moved);
}

static void take_out(struct finish_heap *heap, uint32_t route)
{
    uint32_t place = heap->place[route];
    struct finish last = heap->first[--heap->count];
    heap->place[route] = NO_PLACE;
    if (last.route == route)
        return;
    put(heap, place, last);
    sift_up(heap, place);
    sift_down(heap, heap->place[last.route]);
}

void finish_heap_set(struct finish_heap *heap, uint32_t route, picoseconds at)
{
    if (at == NEVER) {
        if (finish_heap_has(heap, route))
            take_out(heap, route);
        return;
    }
    finish_heap_put(heap, route, at);
    sift_up(heap, heap->place[route]);
    sift_down(heap, heap->place[route]);
}

void finish_heap_put(struct finish_heap *heap, uint32_t route, picoseconds at)
{
    uint32_t place = finish_heap_has(heap, route) ? heap->place[route] : heap->count++;
    put(heap, place, (struct finish){at, route});
}

void finish_heap_sort(struct finish_heap *heap)
{
    for (uint32_t place = heap->count / 2; place-- > 0;)
        sift_down(heap, place);
}
