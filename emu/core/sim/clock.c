/* Timers wait on wheels.
 *
 *     soon      the timers of this tick    | x x x x |
 *     wheel 0   a slot a tick              | . . x . . x x . . |
 *     wheel 1   a slot a turn of wheel 0   | . x . . . . . . . |
 *     wheel 2   a slot a turn of wheel 1   ...
 *
 * Setting a timer puts it into the slot of its tick, or, when that lies beyond the
 * present turn, into the slot of its turn; when the turn comes its timers are
 * spread over the wheels below. So the cost of a timer does not grow with the number
 * of timers (Varghese and Lauck, SOSP'87).
 *
 * A slot is in no order. When its tick comes, its timers are sorted, and the first of
 * them go to `soon`: a large fabric has hundreds of timers in a tick, and a list in
 * order would be searched for the place of each of them.
 *
 * A timer that is cancelled, or set to later, stays where it is queued, and what
 * has become of it is looked at when its place comes up. That makes both free, and
 * most timers that are moved (retransmission, pause) are moved to later again and
 * again. Only a timer that is set to earlier than it is queued for is looked for,
 * which is rare. */
#include "sim/clock.h"

#include <assert.h>
#include <string.h>

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

static void slot_push(struct timer **first, struct timer *timer)
{
    timer->next = *first;
    *first = timer;
}

static void slot_remove(struct timer **first, const struct timer *timer)
{
    while (*first != timer)
        first = &(*first)->next;
    *first = timer->next;
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

static void put_into_slot(struct clock *clock, struct timer *timer)
{
    uint64_t tick = tick_of(timer->queued_at);
    int number = wheel_of(clock, tick);
    uint32_t slot = slot_of(tick, number);
    slot_push(&clock->wheels[number].first[slot], timer);
    slot_filled(&clock->wheels[number], slot);
}

static void remove_from_slot(struct clock *clock, const struct timer *timer)
{
    uint64_t tick = tick_of(timer->queued_at);
    int number = wheel_of(clock, tick);
    struct wheel *wheel = &clock->wheels[number];
    uint32_t slot = slot_of(tick, number);
    slot_remove(&wheel->first[slot], timer);
    if (!wheel->first[slot])
        slot_emptied(wheel, slot);
}

/* Empties a used slot. Returns its first timer. */
static struct timer *empty_slot(struct wheel *wheel, uint32_t slot)
{
    struct timer *first = wheel->first[slot];
    wheel->first[slot] = NULL;
    slot_emptied(wheel, slot);
    return first;
}

/* ---- the next timers of the present tick ----------------------------------------- */

/* Timers of one tick are in the order of their keys. */
static uint64_t key_of(const struct timer *timer)
{
    uint64_t within_tick = (uint64_t)timer->queued_at & ((UINT64_C(1) << TICK_BITS) - 1);
    return within_tick << ORDER_BITS | timer->queued_order;
}

/* Whether the present tick has timers in its slot, too. They are after all of `soon`. */
static bool has_later(const struct clock *clock)
{
    return clock->wheels[0].first[slot_of(clock->tick, 0)];
}

static void make_room(struct upcoming *soon)
{
    if (soon->end < SOON_ROOM || !soon->first)
        return;
    soon->end -= soon->first;
    memmove(soon->timers, soon->timers + soon->first, soon->end * sizeof *soon->timers);
    soon->first = 0;
}

/* Puts a timer of the present tick into its place. When all places are taken, the last timer goes
 * to the slot of the tick. */
static void insert_soon(struct clock *clock, struct timer *timer)
{
    struct upcoming *soon = &clock->soon;
    uint64_t key = key_of(timer);
    make_room(soon);
    bool is_last = soon->first == soon->end || soon->timers[soon->end - 1].key < key;
    if (is_last && (soon->end == SOON_ROOM || has_later(clock))) {
        put_into_slot(clock, timer);
        return;
    }
    if (soon->end == SOON_ROOM)
        put_into_slot(clock, soon->timers[--soon->end].timer);
    uint32_t place = soon->end++;
    for (; place > soon->first && soon->timers[place - 1].key > key; place--)
        soon->timers[place] = soon->timers[place - 1];
    soon->timers[place] = (struct upcoming_timer){key, timer};
}

static void remove_soon(struct upcoming *soon, uint32_t place)
{
    soon->end--;
    memmove(soon->timers + place, soon->timers + place + 1,
            (soon->end - place) * sizeof *soon->timers);
}

static void enter(struct clock *clock, struct timer *timer)
{
    timer->queued_at = timer->at;
    timer->queued_order = timer->order;
    if (tick_of(timer->at) == clock->tick)
        insert_soon(clock, timer);
    else
        put_into_slot(clock, timer);
}

/* Takes a timer out of the middle of its queue. */
SELDOM static void leave(struct clock *clock, struct timer *timer)
{
    struct upcoming *soon = &clock->soon;
    uint32_t place = soon->first;
    while (place < soon->end && soon->timers[place].timer != timer)
        place++;
    if (place < soon->end)
        remove_soon(soon, place);
    else
        remove_from_slot(clock, timer);
    timer->queued_at = NEVER;
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
    for (struct timer *timer = empty_slot(wheel, slot), *next; timer; timer = next) {
        next = timer->next;
        timer->queued_at = NEVER;
        if (timer->at != NEVER)
            enter(clock, timer);
    }
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
        clock->ahead = NULL;
        clock->ahead_slot = 0;
        spread(clock, wheel, slot);
        return true;
    }
    return false;
}

/* Announces timers to `prefetch` when the next timer has left `soon`: each timer FORESIGHT times,
 * at every event of the last FORESIGHT events before its own. */
static void foresee_next(const struct clock *clock)
{
    const struct upcoming *soon = &clock->soon;
    uint32_t left = soon->end - soon->first;
    for (uint32_t away = left < FORESIGHT ? left : FORESIGHT; away > 0; away--)
        clock->prefetch(soon->timers[soon->first + away - 1].timer, away);
}

/* The same for the first timers of a tick, which have missed some announcements. */
static void foresee_first(const struct clock *clock)
{
    const struct upcoming *soon = &clock->soon;
    uint32_t left = soon->end - soon->first;
    for (uint32_t away = FORESIGHT; away > 0; away--)
        for (uint32_t place = 0; place < left && place + 1 < away; place++)
            clock->prefetch(soon->timers[soon->first + place].timer, away);
}

/* Fetches the timers of the next ticks, one at each event, because next_tick will read them one
 * after the other. A timer that has left its slot meanwhile leads astray, which does no harm. */
static void look_ahead(struct clock *clock)
{
    const struct wheel *wheel = &clock->wheels[0];
    if (!clock->ahead) {
        uint32_t slot = clock->ahead_slot < SLOTS ? next_slot(wheel, clock->ahead_slot) : SLOTS;
        clock->ahead = slot < SLOTS ? wheel->first[slot] : NULL;
        clock->ahead_slot = slot + 1;
    } else
        clock->ahead = clock->ahead->next;
    __builtin_prefetch(clock->ahead);
}

/* ---- sorting --------------------------------------------------------------------- */

static bool is_before(const struct timer *one, const struct timer *other)
{
    return key_of(one) < key_of(other);
}

/* Takes timers off a list while they rise or fall; returns them in order. */
static struct timer *take_run(struct timer **list)
{
    struct timer *first = *list, *last = first;
    *list = first->next;
    for (struct timer *timer = *list, *rest; timer; timer = rest) {
        rest = timer->next;
        if (is_before(last, timer)) {
            last->next = timer;
            last = timer;
        } else if (is_before(timer, first)) {
            timer->next = first;
            first = timer;
        } else
            break;
        *list = rest;
    }
    last->next = NULL;
    return first;
}

static struct timer *merge(struct timer *one, struct timer *other)
{
    struct timer *merged, **end = &merged;
    while (one && other) {
        struct timer **lesser = is_before(one, other) ? &one : &other;
        *end = *lesser;
        end = &(*lesser)->next;
        *lesser = *end;
    }
    *end = one ? one : other;
    return merged;
}

/* Merges `run` with the runs of the list. */
SELDOM static struct timer *merge_runs(struct timer *run, struct timer *list)
{
    enum { PLACES = 32 };
    struct timer *merged[PLACES] = {NULL}; /* the place n: of 2^n runs; NULL: none */
    int places = 0;
    for (;; run = take_run(&list)) {
        int place = 0;
        for (; merged[place]; place++) {
            run = merge(merged[place], run);
            merged[place] = NULL;
        }
        merged[place] = run;
        places = place < places ? places : place + 1;
        if (!list)
            break;
    }
    for (int place = 0; place < places; place++)
        list = merge(merged[place], list);
    return list;
}

/* There are few runs: ports do the same things one after the other. */
static struct timer *sort(struct timer *list)
{
    struct timer *run = take_run(&list);
    return list ? merge_runs(run, list) : run;
}

/* Fills `soon` from a sorted list. Returns what has found no place. */
static struct timer *fill_soon(struct upcoming *soon, struct timer *list)
{
    soon->first = soon->end = 0;
    for (; list && soon->end < SOON_ROOM; list = list->next)
        soon->timers[soon->end++] = (struct upcoming_timer){key_of(list), list};
    return list;
}

/* Goes to the next tick that has timers, or to more timers of the present tick, unless that is
 * after the tick `until`. False when there are none. */
static bool next_tick(struct clock *clock, uint64_t until)
{
    struct wheel *wheel = &clock->wheels[0];
    uint32_t slot = next_slot(wheel, slot_of(clock->tick, 0));
    if (slot == SLOTS)
        return next_turn(clock, until);
    uint64_t tick = clock->tick >> SLOT_BITS << SLOT_BITS | slot;
    if (tick > until)
        return false;
    clock->tick = tick;
    struct timer *first = empty_slot(wheel, slot);
    struct timer *later = fill_soon(&clock->soon, sort(first));
    if (later) {
        wheel->first[slot] = later;
        slot_filled(wheel, slot);
    }
    if (clock->prefetch) {
        foresee_first(clock);
        if (clock->ahead_slot <= slot) {
            clock->ahead_slot = slot + 1;
            clock->ahead = NULL;
        }
    }
    return true;
}

/* Removes and returns the next timer that is due by `until`; NULL: none. */
static struct timer *take_next(struct clock *clock, picoseconds until)
{
    struct upcoming *soon = &clock->soon;
    for (;;) {
        if (soon->first == soon->end) {
            if (!next_tick(clock, tick_of(until)))
                return NULL;
            continue;
        }
        struct timer *timer = soon->timers[soon->first].timer;
        if (timer->queued_at > until)
            return NULL;
        soon->first++;
        if (clock->prefetch) {
            foresee_next(clock);
            look_ahead(clock);
        }
        bool is_due = is_due_as_queued(timer);
        timer->queued_at = NEVER;
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

/* When the first timer of `soon` is due. Those before it that are cancelled, or set to later, go
 * where they belong. NEVER: there is none. */
static picoseconds earliest_soon(struct clock *clock)
{
    struct upcoming *soon = &clock->soon;
    while (soon->first < soon->end) {
        struct timer *timer = soon->timers[soon->first].timer;
        if (is_due_as_queued(timer))
            return timer->at;
        soon->first++;
        timer->queued_at = NEVER;
        if (timer->at != NEVER)
            enter(clock, timer);
    }
    return NEVER;
}

/* When the first timer of a slot that is still set is due. */
static picoseconds earliest_of(const struct timer *first)
{
    picoseconds earliest = NEVER;
    for (const struct timer *timer = first; timer; timer = timer->next)
        if (timer->at < earliest)
            earliest = timer->at;
    return earliest;
}

/* Where all of a slot's timers are set to later or cancelled, they go where they belong. */
picoseconds clock_next_deadline(struct clock *clock)
{
    picoseconds soonest = earliest_soon(clock);
    if (soonest != NEVER)
        return soonest;
    for (int number = 0; number < WHEELS; number++) {
        struct wheel *wheel = &clock->wheels[number];
        uint32_t slot;
        while ((slot = next_slot(wheel, slot_of(clock->tick, number))) != SLOTS) {
            picoseconds earliest = earliest_of(wheel->first[slot]);
            uint64_t tick = tick_of(earliest);
            if (wheel_of(clock, tick) == number && slot_of(tick, number) == slot)
                return earliest;
            spread(clock, wheel, slot);
        }
    }
    return NEVER;
}

/* ---- timers -------------------------------------------------------------------- */

/* The classes of timers, in their order at one instant: the highest bits of `order`. The rest is
 * enough for 10 million timers a second for ten years. */
#define CLASS_BITS 2
#define COMMON (UINT64_C(0) << (ORDER_BITS - CLASS_BITS))
#define ARRIVAL (UINT64_C(1) << (ORDER_BITS - CLASS_BITS))
#define OWN (UINT64_C(2) << (ORDER_BITS - CLASS_BITS))

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
