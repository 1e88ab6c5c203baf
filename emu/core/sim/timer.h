/* A timer, and the order of timers within a tick. The clock sets them and fires them (clock.h). */
#ifndef EMU_SIM_TIMER_H
#define EMU_SIM_TIMER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t picoseconds;

#define PS_PER_NS INT64_C(1000)
#define PS_PER_US INT64_C(1000000)
#define PS_PER_MS INT64_C(1000000000)
#define PS_PER_S INT64_C(1000000000000)
#define NEVER INT64_MAX

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Not inlined: the callers' common path should not pay for its registers and stack. */
#define SELDOM __attribute__((noinline))

struct timer {
    picoseconds at; /* NEVER when it is not set */
    uint64_t order; /* among timers due at the same instant */
    void (*fire)(struct timer *timer, picoseconds now);
    /* The time for which it is queued, which may be earlier than the one it is set to. */
    picoseconds queued_at; /* NEVER: it is in no queue */
    struct timer *next;    /* in its slot of the wheel */
};

enum {
    TICK_BITS = 10,  /* a tick is 1024 ps */
    ORDER_BITS = 54, /* of `order`; with those of the time within a tick 64 */
};

static_assert(TICK_BITS + ORDER_BITS == 64, "a timer's place within its tick is one number");

/* Timers of one tick fire in the order of their keys. */
static inline uint64_t timer_key(const struct timer *timer)
{
    return (uint64_t)timer->at << ORDER_BITS | timer->order;
}

/* Sorts a list of timers of one tick. Returns its first timer. */
struct timer *timers_sort(struct timer *list);

#endif
