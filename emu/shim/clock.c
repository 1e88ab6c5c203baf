/* A four-way heap of timers: flat, cache-friendly, and a timer knows its own
 * slot, so that moving or cancelling one costs no search. */
#include "clock.h"

#include <assert.h>
#include <stdlib.h>

enum { WAYS = 4 };

void clock_init(struct clock *clock)
{
    *clock = (struct clock){0};
}

void clock_free(struct clock *clock)
{
    free(clock->heap);
    *clock = (struct clock){0};
}

void timer_init(struct clock *clock, struct timer *timer,
                void (*fire)(struct timer *timer, picoseconds now))
{
    *timer = (struct timer){.at = NEVER, .fire = fire};
    clock->capacity++;
    /* Grown in powers of two, when the count of timers reaches one. */
    if ((clock->capacity & (clock->capacity - 1)) == 0) {
        size_t room = 2 * (size_t)clock->capacity;
        struct timer **heap = realloc(clock->heap, room * sizeof *heap);
        if (heap)
            clock->heap = heap;
        else
            clock->out_of_memory = true;
    }
}

static bool due_before(const struct timer *a, const struct timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void place(struct clock *clock, struct timer *timer, uint32_t slot)
{
    clock->heap[slot] = timer;
    timer->slot = slot;
}

static void sift_up(struct clock *clock, struct timer *timer, uint32_t slot)
{
    while (slot > 0) {
        uint32_t parent = (slot - 1) / WAYS;
        if (!due_before(timer, clock->heap[parent]))
            break;
        place(clock, clock->heap[parent], slot);
        slot = parent;
    }
    place(clock, timer, slot);
}

static void sift_down(struct clock *clock, struct timer *timer, uint32_t slot)
{
    for (;;) {
        uint32_t first = slot * WAYS + 1, least = first;
        if (first >= clock->count)
            break;
        uint32_t end = first + WAYS < clock->count ? first + WAYS : clock->count;
        for (uint32_t child = first + 1; child < end; child++)
            if (due_before(clock->heap[child], clock->heap[least]))
                least = child;
        if (!due_before(clock->heap[least], timer))
            break;
        place(clock, clock->heap[least], slot);
        slot = least;
    }
    place(clock, timer, slot);
}

void timer_set(struct clock *clock, struct timer *timer, picoseconds at)
{
    assert(at >= clock->now && at != NEVER);
    bool was_set = timer_is_set(timer);
    bool earlier = !was_set || at < timer->at;
    timer->at = at;
    timer->order = clock->order++;
    if (!was_set) {
        assert(clock->count < clock->capacity);
        sift_up(clock, timer, clock->count++);
    } else if (earlier) {
        sift_up(clock, timer, timer->slot);
    } else {
        sift_down(clock, timer, timer->slot);
    }
}

void timer_cancel(struct clock *clock, struct timer *timer)
{
    if (!timer_is_set(timer))
        return;
    uint32_t slot = timer->slot;
    timer->at = NEVER;
    struct timer *last = clock->heap[--clock->count];
    if (last == timer)
        return;
    if (slot > 0 && due_before(last, clock->heap[(slot - 1) / WAYS]))
        sift_up(clock, last, slot);
    else
        sift_down(clock, last, slot);
}

uint64_t clock_run_until(struct clock *clock, picoseconds until)
{
    uint64_t fired = 0;
    while (clock->count && clock->heap[0]->at <= until) {
        struct timer *timer = clock->heap[0];
        clock->now = timer->at;
        timer_cancel(clock, timer);
        timer->fire(timer, clock->now);
        fired++;
    }
    if (until > clock->now)
        clock->now = until;
    return fired;
}
