/* Emulated time and the timers that hang on it.
 *
 * Time is a signed count of emulated picoseconds since the run began: at
 * 800 Gb/s one byte lasts 10 ps, so serialisation times stay whole numbers and
 * errors do not add up; 63 bits reach 106 days.
 *
 * Nothing in the core asks what time it is. A driver tells the clock how far it
 * may go (`clock_run_until`), and every timer due by then fires in the order of
 * its due time, with `now` set to exactly that time, however late the driver
 * was. Timers due at the same instant fire in this order:
 *
 *     common     what concerns several nodes: faults, samples    in the order they were set
 *     arrival    a frame reaches a port                          by the number of the port
 *     own        what a node has set for itself                  in the order they were set
 *
 * So what a node does depends on its own past and on the frames that reach it, and not on how
 * timers of other nodes lie between its own. */
#ifndef EMU_SIM_CLOCK_H
#define EMU_SIM_CLOCK_H

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
    uint64_t order; /* among timers due at the same instant */
    void (*fire)(struct timer *timer, picoseconds now);
    /* Where it is queued, which may be for an earlier time than it is set to. */
    picoseconds queued_at; /* NEVER: it is in no queue */
    uint64_t queued_order;
    struct timer *next; /* in its slot of the wheel */
};

enum {
    TICK_BITS = 10, /* a tick is 1024 ps */
    SLOT_BITS = 11,
    SLOTS = 1 << SLOT_BITS,
    WHEELS = 5,      /* TICK_BITS + WHEELS * SLOT_BITS are enough for any time */
    ORDER_BITS = 54, /* of `order`; with those of the time within a tick 64 */
    SOON_ROOM = 256, /* timers of a tick that are looked at ahead */
    FORESIGHT = 3,   /* how often a timer is announced before it fires */
};

static_assert(TICK_BITS + ORDER_BITS == 64, "a timer's place within its tick is one number");

/* A wheel's timers by slot, and a bit for each slot that has any. */
struct wheel {
    struct timer *first[SLOTS];
    uint64_t used[SLOTS / 64];
    uint64_t used_words; /* bit per word of `used` that is not 0 */
};

struct upcoming_timer {
    uint64_t key; /* its place among the timers of the tick */
    struct timer *timer;
};

/* The next timers of the present tick, in order: what comes next is known without a look at the
 * timers, which lie all over the memory of the fabric. */
struct upcoming {
    uint32_t first, end;
    struct upcoming_timer timers[SOON_ROOM];
};

struct clock {
    /* Told, before a timer fires, of those that come next in its tick; may only look. NULL: nobody
     * wants to know. */
    void (*prefetch)(const struct timer *timer, unsigned events_away);
    picoseconds now;
    uint64_t order;
    uint64_t tick; /* no timer is queued for an earlier one */
    struct upcoming soon;
    const struct timer *ahead; /* see look_ahead */
    uint32_t ahead_slot;
    struct wheel wheels[WHEELS];
};

void clock_init(struct clock *clock);

/* Before anything else is done with a timer. */
void timer_init(struct timer *timer, void (*fire)(struct timer *timer, picoseconds now));

/* Sets the timer, or moves it when it is set already; `at` must not lie in the past. */
void timer_set(struct clock *clock, struct timer *timer, picoseconds at);
/* The same for a common event, and for the arrival of a frame at the port `number`, of which there
 * may be one timer alone. */
void timer_set_common(struct clock *clock, struct timer *timer, picoseconds at);
void timer_set_arrival(struct clock *clock, struct timer *timer, picoseconds at, uint32_t number);
void timer_cancel(struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->at != NEVER;
}

/* When the next timer is due; NEVER when none is set. */
picoseconds clock_next_deadline(struct clock *clock);

/* The same for all timers but this one. */
picoseconds clock_next_deadline_besides(struct clock *clock, struct timer *timer);

/* Fires all timers that are due up to and including `until`, and sets the time to `until`.
 * Returns how many timers fired. */
uint64_t clock_run_until(struct clock *clock, picoseconds until);

#endif
