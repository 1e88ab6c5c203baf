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

#include "sim/timer.h"

/* How long `bytes` occupy a link of `rate_bps`. */
static inline picoseconds serialisation(uint64_t bytes, uint64_t rate_bps)
{
    const uint64_t bits_ps = 8 * (uint64_t)PS_PER_S;
    if (bytes <= UINT64_MAX / bits_ps)
        return (picoseconds)(bytes * bits_ps / rate_bps);
    return (picoseconds)((unsigned __int128)bytes * bits_ps / rate_bps);
}

enum {
    SLOT_BITS = 11,
    SLOTS = 1 << SLOT_BITS,
    WHEELS = 5,    /* TICK_BITS + WHEELS * SLOT_BITS are enough for any time */
    FORESIGHT = 3, /* how often a timer is announced before it fires */
};

/* A wheel's timers by slot, and a bit for each slot that has any. */
struct wheel {
    struct timer *first[SLOTS];
    uint64_t used[SLOTS / 64];
    uint64_t used_words; /* bit per word of `used` that is not 0 */
};

struct clock {
    /* Told, before a timer fires, of those that come next in its tick; may only look. NULL: nobody
     * wants to know. */
    void (*prefetch)(const struct timer *timer, unsigned events_away);
    picoseconds now;
    uint64_t order;
    uint64_t tick;          /* no timer is queued for an earlier one */
    struct timer *present;  /* those of this tick, in order; NULL: they are in its slot, if any */
    struct timer *inserted; /* the last that was put into its place in `present`; NULL: it left */
    const struct timer *ahead; /* see look_ahead */
    uint32_t ahead_slot;
    struct wheel wheels[WHEELS];
};

/* The shortest time that is a multiple of both; NEVER if it is longer than a second, or if one of
 * them is NEVER. */
picoseconds common_multiple(picoseconds one, picoseconds other);

void clock_init(struct clock *clock);

/* Before anything else is done with a timer. */
void timer_init(struct timer *timer, void (*fire)(struct timer *timer, picoseconds now));

/* Sets the timer, or moves it when it is set already; `at` must not lie in the past. */
void timer_set(struct clock *clock, struct timer *timer, picoseconds at);
/* The same for a common event, and for the arrival of a frame at the port `number`, of which there
 * may be one timer alone. */
void timer_set_common(struct clock *clock, struct timer *timer, picoseconds at);
void timer_set_arrival(struct clock *clock, struct timer *timer, picoseconds at, uint32_t number);
/* As timer_set, for what a node does again and again without any work (clock_has_work), or what
 * belongs to a frame. */
void timer_set_background(struct clock *clock, struct timer *timer, picoseconds at);
/* As timer_set_background, for what goes on in the same way while nothing else happens
 * (clock_skip). */
void timer_set_upkeep(struct clock *clock, struct timer *timer, picoseconds at);
void timer_cancel(struct timer *timer);
/* The same, and the clock knows nothing of the timer any more: its memory may be given back. */
void timer_remove(struct clock *clock, struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->at != NEVER;
}

/* When the next timer is due; NEVER when none is set. */
picoseconds clock_next_deadline(struct clock *clock);

/* The same for all timers but this one. */
picoseconds clock_next_deadline_besides(struct clock *clock, struct timer *timer);

/* Whether a node has set a timer for itself that is not in the background. Looks at all timers. */
bool clock_has_work(const struct clock *clock);

/* When the next timer is due that is neither upkeep nor an arrival nor this one; NEVER: none is
 * set. Looks at all timers. */
picoseconds clock_next_event(const struct clock *clock, const struct timer *besides);

/* When the last timer is due that is upkeep or an arrival; 0: none is set. Looks at all timers. */
picoseconds clock_last_upkeep(const struct clock *clock);

/* Lets `span` pass without firing a timer, as if upkeep and arrivals had gone on in the same way:
 * all of them, of which none may be due later than that, move by `span`. No event of
 * clock_next_event may be due before. The timer that it leaves out is due at the end of the span,
 * if it was due before. */
void clock_skip(struct clock *clock, picoseconds span);

/* Fires all timers that are due up to and including `until`, and sets the time to `until`.
 * Returns how many timers fired. */
uint64_t clock_run_until(struct clock *clock, picoseconds until);

#endif
