/* Timers wait on wheels.
 *
 *     wheel 0   a slot a tick              | . . x . . x x . . |
 *     wheel 1   a slot a turn of wheel 0   | . x . . . . . . . |
 *     wheel 2   a slot a turn of wheel 1   ...
 *
 * Setting a timer puts it into the slot of its tick, or, when that lies beyond the
 * present turn, into the slot of its turn; when the turn comes its timers are
 * spread over the wheels below. The few timers of a tick are in order of their due
 * times. So the cost of a timer does not grow with the number of timers (Varghese
 * and Lauck, SOSP'87).
 *
 * A timer that is cancelled, or set to later, stays where it is queued, and what
 * has become of it is looked at when its place comes up. That makes both free, and
 * most timers that are moved (retransmission, pause) are moved to later again and
 * again. Only a timer that is set to earlier than it is queued for is looked for,
 * which is rare. */
#include "sim/clock.h"

#include <assert.h>

enum { WORD = 64 };

void clock_init(struct clock *clock)
{
    *clock = (struct clock){0};
}

void timer_init(struct timer *timer, void (*fire)(struct timer *timer, picoseconds now))
{
    *timer = (struct timer){.at = NEVER, .queued_at = NEVER, .fire = fire};
}

/* ---- the timers of a slot ------------------------------------------------------ */

static bool queued_before(const struct timer *a, const struct timer *b)
{
    return a->queued_at < b->queued_at ||
           (a->queued_at == b->queued_at && a->queued_order < b->queued_order);
}

static void insert_after(struct timer *before, struct timer *timer)
{
    timer->next = before->next;
    before->next = timer;
}

static void ring_append(struct timer **last, struct timer *timer)
{
    if (*last)
        insert_after(*last, timer);
    else
        timer->next = timer;
    *last = timer;
}

/* Nearly always a timer is alone, or comes last. */
static void ring_insert(struct timer **last, struct timer *timer)
{
    struct timer *before = *last;
    if (!before || queued_before(before, timer)) {
        ring_append(last, timer);
        return;
    }
    while (queued_before(before->next, timer))
        before = before->next;
    insert_after(before, timer);
}

static void ring_remove_after(struct timer **last, struct timer *before)
{
    struct timer *timer = before->next;
    before->next = timer->next;
    if (timer == before)
        *last = NULL;
    else if (timer == *last)
        *last = before;
}

/* ---- the wheels ---------------------------------------------------------------- */

static uint64_t tick_of(picoseconds at)
{
    return (uint64_t)at >> TICK_BITS;
}

static uint32_t slot_of(uint64_t tick, int wheel)
{
    return tick >> (wheel * SLOT_BITS) & (SLOTS - 1);
}

/* The lowest wheel whose present turn contains the tick. */
static int wheel_of(const struct clock *clock, uint64_t tick)
{
    uint64_t differs = (tick ^ clock->tick) >> SLOT_BITS;
    return differs ? 1 + (WORD - 1 - __builtin_clzll(differs)) / SLOT_BITS : 0;
}

static void slot_filled(struct wheel *wheel, uint32_t slot)
{
    wheel->used[slot / WORD] |= UINT64_C(1) << slot % WORD;
    wheel->used_words |= UINT64_C(1) << slot / WORD;
}

static void slot_emptied(struct wheel *wheel, uint32_t slot)
{
    wheel->used[slot / WORD] &= ~(UINT64_C(1) << slot % WORD);
    if (!wheel->used[slot / WORD])
        wheel->used_words &= ~(UINT64_C(1) << slot / WORD);
}

/* The first used slot from `slot` on; SLOTS when there is none. */
static uint32_t next_slot(const struct wheel *wheel, uint32_t slot)
{
    uint32_t word = slot / WORD;
    uint64_t used = wheel->used[word] >> slot % WORD;
    if (used)
        return slot + (uint32_t)__builtin_ctzll(used);
    uint64_t words = wheel->used_words >> word >> 1;
    if (!words)
        return SLOTS;
    word += 1 + (uint32_t)__builtin_ctzll(words);
    return word * WORD + (uint32_t)__builtin_ctzll(wheel->used[word]);
}

/* Only wheel 0 has its slots in order: from the others they are put in order later. */
static void enter(struct clock *clock, struct timer *timer)
{
    uint64_t tick = tick_of(timer->at);
    int number = wheel_of(clock, tick);
    struct wheel *wheel = &clock->wheels[number];
    uint32_t slot = slot_of(tick, number);
    struct timer **last = &wheel->last[slot];
    timer->queued_at = timer->at;
    timer->queued_order = timer->order;
    if (!*last)
        slot_filled(wheel, slot);
    if (number == 0)
        ring_insert(last, timer);
    else
        ring_append(last, timer);
}

static void leave_after(struct wheel *wheel, uint32_t slot, struct timer *before)
{
    before->next->queued_at = NEVER;
    ring_remove_after(&wheel->last[slot], before);
    if (!wheel->last[slot])
        slot_emptied(wheel, slot);
}

/* Takes a timer out of the middle of a slot. */
SELDOM static void leave(struct clock *clock, const struct timer *timer)
{
    uint64_t tick = tick_of(timer->queued_at);
    int number = wheel_of(clock, tick);
    struct wheel *wheel = &clock->wheels[number];
    struct timer *before = wheel->last[slot_of(tick, number)];
    while (before->next != timer)
        before = before->next;
    leave_after(wheel, slot_of(tick, number), before);
}

/* Whether a queued timer is to fire when its place comes up. */
static bool is_due_as_queued(const struct timer *timer)
{
    return timer->at == timer->queued_at && timer->order == timer->queued_order;
}

/* ---- time goes on ----------------------------------------------------------------- */

/* The timers of a turn of lower wheels go there. */
static void spread(struct clock *clock, struct wheel *wheel, uint32_t slot)
{
    struct timer *last = wheel->last[slot], *next = last->next, *timer;
    wheel->last[slot] = NULL;
    slot_emptied(wheel, slot);
    do {
        timer = next;
        next = timer->next;
        timer->queued_at = NEVER;
        if (timer->at != NEVER)
            enter(clock, timer);
    } while (timer != last);
}

/* Goes to the next turn of a wheel that has any timers, unless that begins after the tick
 * `until`. False when there is none. */
static bool next_turn(struct clock *clock, uint64_t until)
{
    for (int number = 1; number < WHEELS; number++) {
        struct wheel *wheel = &clock->wheels[number];
        uint32_t slot = next_slot(wheel, slot_of(clock->tick, number));
        if (slot == SLOTS)
            continue;
        int shift = number * SLOT_BITS;
        uint64_t tick = (clock->tick >> shift >> SLOT_BITS << SLOT_BITS | slot) << shift;
        if (tick > until)
            return false;
        clock->tick = tick;
        spread(clock, wheel, slot);
        return true;
    }
    return false;
}

/* Announces the next timers of a slot, and fetches the one behind them for the next call. */
static void prefetch(const struct clock *clock, const struct timer *last)
{
    const struct timer *timer = last;
    unsigned events_away = 0;
    do {
        timer = timer->next;
        if (events_away++ == FORESIGHT) {
            __builtin_prefetch(timer);
            return;
        }
        clock->prefetch(timer, events_away);
    } while (timer != last);
}

/* Removes and returns the next timer that is due by `until`; NULL: none. */
static struct timer *take_next(struct clock *clock, picoseconds until)
{
    struct wheel *wheel = &clock->wheels[0];
    for (;;) {
        uint32_t slot = next_slot(wheel, slot_of(clock->tick, 0));
        if (slot == SLOTS) {
            if (!next_turn(clock, tick_of(until)))
                return NULL;
            continue;
        }
        struct timer *last = wheel->last[slot], *timer = last->next;
        if (timer->queued_at > until)
            return NULL;
        bool is_due = is_due_as_queued(timer);
        clock->tick = tick_of(timer->queued_at);
        leave_after(wheel, slot, last);
        if (wheel->last[slot] && clock->prefetch)
            prefetch(clock, wheel->last[slot]);
        if (is_due)
            return timer;
        if (timer->at != NEVER)
            enter(clock, timer);
    }
}

uint64_t clock_run_until(struct clock *clock, picoseconds until)
{
    uint64_t fired = 0;
    for (struct timer *timer; (timer = take_next(clock, until)); fired++) {
        clock->now = timer->at;
        timer->at = NEVER;
        timer->fire(timer, clock->now);
    }
    if (until > clock->now)
        clock->now = until;
    return fired;
}

/* When the first timer of a slot that is still set is due. */
static picoseconds earliest_of(const struct timer *last)
{
    picoseconds earliest = NEVER;
    const struct timer *timer = last;
    do {
        if (timer->at < earliest)
            earliest = timer->at;
        timer = timer->next;
    } while (timer != last);
    return earliest;
}

/* Where all of a slot's timers are set to later or cancelled, they go where they belong. */
picoseconds clock_next_deadline(struct clock *clock)
{
    for (int number = 0; number < WHEELS; number++) {
        struct wheel *wheel = &clock->wheels[number];
        uint32_t slot;
        while ((slot = next_slot(wheel, slot_of(clock->tick, number))) != SLOTS) {
            picoseconds earliest = earliest_of(wheel->last[slot]);
            uint64_t tick = tick_of(earliest);
            if (wheel_of(clock, tick) == number && slot_of(tick, number) == slot)
                return earliest;
            spread(clock, wheel, slot);
        }
    }
    return NEVER;
}

/* ---- timers -------------------------------------------------------------------- */

/* The classes of timers, in their order at one instant: the highest bits of `order`. */
#define COMMON (UINT64_C(0) << 62)
#define ARRIVAL (UINT64_C(1) << 62)
#define OWN (UINT64_C(2) << 62)

static void set(struct clock *clock, struct timer *timer, picoseconds at, uint64_t order)
{
    assert(at >= clock->now && at != NEVER);
    timer->at = at;
    timer->order = order;
    if (timer->queued_at != NEVER) {
        if (at > timer->queued_at || (at == timer->queued_at && order >= timer->queued_order))
            return;
        leave(clock, timer);
    }
    enter(clock, timer);
}

void timer_set(struct clock *clock, struct timer *timer, picoseconds at)
{
    set(clock, timer, at, OWN | clock->order++);
}

void timer_set_common(struct clock *clock, struct timer *timer, picoseconds at)
{
    set(clock, timer, at, COMMON | clock->order++);
}

void timer_set_arrival(struct clock *clock, struct timer *timer, picoseconds at, uint32_t number)
{
    set(clock, timer, at, ARRIVAL | number);
}

void timer_cancel(struct timer *timer)
{
    timer->at = NEVER;
}

picoseconds clock_next_deadline_besides(struct clock *clock, struct timer *timer)
{
    picoseconds at = timer->at, next;
    timer_cancel(timer);
    next = clock_next_deadline(clock);
    if (at != NEVER)
        set(clock, timer, at, timer->order);
    return next;
}
