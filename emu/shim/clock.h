/* Emulated time and the timers that hang on it.
 *
 * Time is a signed count of emulated picoseconds since the run began: at
 * 800 Gb/s one byte lasts 10 ps, so serialisation times stay whole numbers and
 * errors do not add up; 63 bits reach 106 days.
 *
 * Nothing in the core asks what time it is. A driver tells the clock how far it
 * may go (`clock_run_until`), and every timer due by then fires in the order of
 * its due time, with `now` set to exactly that time, however late the driver
 * was. Timers due at the same instant fire in the order they were set. */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

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

/* How long `bytes` occupy a link of `rate_bps`. */
static inline picoseconds serialisation(uint64_t bytes, uint64_t rate_bps)
{
    const uint64_t bits_ps = 8 * (uint64_t)PS_PER_S;
    if (bytes <= UINT64_MAX / bits_ps)
        return (picoseconds)(bytes * bits_ps / rate_bps);
    return (picoseconds)((unsigned __int128)bytes * bits_ps / rate_bps);
}

struct timer {
    picoseconds at; /* NEVER when it is not set */
    uint64_t order; /* when it was set, among timers due at the same instant */
    uint32_t slot;  /* its place in the heap */
    void (*fire)(struct timer *timer, picoseconds now);
};

struct clock {
    picoseconds now;
    struct timer **heap;
    uint32_t count, capacity;
    uint64_t order;
    bool out_of_memory; /* a timer could not be registered at set-up */
};

void clock_init(struct clock *clock);
void clock_free(struct clock *clock);

/* Set-up only: makes room for one more timer, so that setting it never allocates. */
void timer_init(struct clock *clock, struct timer *timer,
                void (*fire)(struct timer *timer, picoseconds now));

/* Sets the timer, or moves it when it is set already; `at` may not lie in the past. */
void timer_set(struct clock *clock, struct timer *timer, picoseconds at);
void timer_cancel(struct clock *clock, struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->at != NEVER;
}

/* When the next timer is due; NEVER when none is set. */
static inline picoseconds clock_next_deadline(const struct clock *clock)
{
    return clock->count ? clock->heap[0]->at : NEVER;
}

/* Fires all that is due up to and including `until`, then stands at `until`.
 * Returns how many timers fired. */
uint64_t clock_run_until(struct clock *clock, picoseconds until);

#endif
