/* Timers wait on wheels.
 *
 *     present   the timers of this tick    x x x x
 *     wheel 0   a slot a tick              | . . x . . x x . . |
 *     wheel 1   a slot a turn of wheel 0   | . x . . . . . . . |
 *     wheel 2   a slot a turn of wheel 1   ...
 *
 * Setting a timer puts it into the slot of its tick if that is less than a turn of wheel 0
 * away, be it in the present turn or in the next. Otherwise it goes into the slot of its
 * turn; when the turn comes its timers are spread over the wheels below. So the cost of a
 * timer does not grow with the number of timers (Varghese and Lauck, SOSP'87), and the
 * usual timer is put into a slot once.
 *
 * A slot is in no order. When its tick comes, its timers are sorted and become `present`: a
 * large fabric has hundreds of timers in a tick, and a list in order would be searched for
 * the place of each of them. Only the few that are set for the present tick itself are put
 * into their place.
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

/* False when the timer is not there. */
static bool slot_remove(struct timer **first, const struct timer *timer)
{
    while (*first && *first != timer)
        first = &(*first)->next;
    if (!*first)
        return false;
    *first = timer->next;
    return true;
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

static void put_on_wheel(struct wheel *wheel, uint32_t slot, struct timer *timer)
{
    slot_push(&wheel->first[slot], timer);
    slot_filled(wheel, slot);
}

static bool take_off_wheel(struct wheel *wheel, uint32_t slot, const struct timer *timer)
{
    if (!slot_remove(&wheel->first[slot], timer))
        return false;
    if (!wheel->first[slot])
        slot_emptied(wheel, slot);
    return true;
}

/* A timer of the next turn of wheel 0 is on that wheel, or still where it was put when its turn was
 * far away. */
static void remove_from_slot(struct clock *clock, const struct timer *timer)
{
    uint64_t tick = tick_of(timer->queued_at);
    if (take_off_wheel(&clock->wheels[0], slot_of(tick, 0), timer))
        return;
    int number = wheel_of(clock, tick);
    bool was_there = take_off_wheel(&clock->wheels[number], slot_of(tick, number), timer);
    assert(was_there);
    (void)was_there;
}

/* Empties a used slot. Returns its first timer. */
static struct timer *empty_slot(struct wheel *wheel, uint32_t slot)
{
    struct timer *first = wheel->first[slot];
    wheel->first[slot] = NULL;
    slot_emptied(wheel, slot);
    return first;
}

/* ---- the timers of the present tick ----------------------------------------------- */

/* Whether a queued timer is to fire when its place comes up. */
static bool is_due_as_queued(const struct timer *timer)
{
    return timer->at == timer->queued_at;
}

/* Puts a timer into its place among those of the present tick, of which there are some. What many
 * ports do at one instant has its next step at one instant, too, so the place is looked for from
 * the last one on. */
SELDOM static void insert_present(struct clock *clock, struct timer *timer)
{
    struct timer *last = clock->inserted, **place = &clock->present;
    if (last && is_due_as_queued(last) && timer_key(last) < timer_key(timer))
        place = &last->next;
    while (*place && !(is_due_as_queued(*place) && timer_key(*place) > timer_key(timer)))
        place = &(*place)->next;
    slot_push(place, timer);
    clock->inserted = timer;
}

/* A timer is no longer among those of the present tick. */
static inline void has_left_present(struct clock *clock, const struct timer *timer)
{
    if (clock->inserted == timer)
        clock->inserted = NULL;
}

/* The timer is due in the present tick, or not within a turn of wheel 0. */
SELDOM static void enter_present_or_far(struct clock *clock, struct timer *timer, uint64_t tick)
{
    int number = wheel_of(clock, tick);
    if (tick == clock->tick && clock->present)
        insert_present(clock, timer);
    else
        put_on_wheel(&clock->wheels[number], slot_of(tick, number), timer);
}

static inline void enter(struct clock *clock, struct timer *timer)
{
    uint64_t tick = tick_of(timer->at);
    timer->queued_at = timer->at;
    if (tick - clock->tick - 1 < SLOTS - 1)
        put_on_wheel(&clock->wheels[0], slot_of(tick, 0), timer);
    else
        enter_present_or_far(clock, timer, tick);
}

/* A timer has left its queue, but was set to later, or cancelled, since it was put there. */
static void enter_again(struct clock *clock, struct timer *timer)
{
    timer->queued_at = NEVER;
    if (timer->at != NEVER)
        enter(clock, timer);
}

/* Takes a timer out of the middle of its queue. */
SELDOM static void leave(struct clock *clock, struct timer *timer)
{
    if (!slot_remove(&clock->present, timer))
        remove_from_slot(clock, timer);
    has_left_present(clock, timer);
    timer->queued_at = NEVER;
}

/* ---- time goes on ----------------------------------------------------------------- */

/* The timers of a turn of lower wheels go there. */
static void spread(struct clock *clock, struct wheel *wheel, uint32_t slot)
{
    for (struct timer *timer = empty_slot(wheel, slot), *next; timer; timer = next) {
        next = timer->next;
        enter_again(clock, timer);
    }
}

/* The first tick of the next turn of wheel 0 that has any timers; false: there are none. */
static bool find_turn(const struct clock *clock, uint64_t *first_tick)
{
    if (clock->wheels[0].used_words) { /* what is left there is of the very next turn */
        *first_tick = ((clock->tick >> SLOT_BITS) + 1) << SLOT_BITS;
        return true;
    }
    for (int number = 1; number < WHEELS; number++) {
        uint32_t slot = next_slot(&clock->wheels[number], slot_of(clock->tick, number));
        if (slot == SLOTS)
            continue;
        int shift = number * SLOT_BITS;
        *first_tick = (clock->tick >> shift >> SLOT_BITS << SLOT_BITS | slot) << shift;
        return true;
    }
    return false;
}

/* Goes to the next turn of wheel 0, unless that begins after the tick `until`. False when there is
 * none. */
SELDOM static bool next_turn(struct clock *clock, uint64_t until)
{
    uint64_t tick;
    if (!find_turn(clock, &tick) || tick > until)
        return false;
    clock->tick = tick;
    clock->ahead = NULL;
    clock->ahead_slot = 0;
    for (int number = WHEELS - 1; number > 0; number--) {
        bool turns = !(tick & ((UINT64_C(1) << number * SLOT_BITS) - 1));
        uint32_t slot = slot_of(tick, number);
        if (turns && clock->wheels[number].first[slot])
            spread(clock, &clock->wheels[number], slot);
    }
    return true;
}

/* Announces timers to `prefetch` when the next timer has left the present ones: each timer
 * FORESIGHT times, at every event of the last FORESIGHT events before its own. */
static void foresee_next(const struct clock *clock)
{
    const struct timer *next[FORESIGHT], *timer = clock->present;
    unsigned away = 0;
    for (; timer && away < FORESIGHT; timer = timer->next)
        next[away++] = timer;
    for (; away > 0; away--)
        clock->prefetch(next[away - 1], away);
}

/* The same for the first timers of a tick, which have missed some announcements. */
static void foresee_first(const struct clock *clock)
{
    for (unsigned away = FORESIGHT; away > 0; away--) {
        const struct timer *timer = clock->present;
        for (unsigned place = 1; timer && place < away; place++, timer = timer->next)
            clock->prefetch(timer, away);
    }
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

/* Removes the timers from a list that are cancelled, or set to a later tick, and puts the latter
 * where they belong. Returns the first that is left. */
static struct timer *keep_present(struct clock *clock, struct timer *list)
{
    struct timer *kept, **end = &kept;
    for (struct timer *timer = list, *next; timer; timer = next) {
        next = timer->next;
        if (tick_of(timer->at) == clock->tick) {
            timer->queued_at = timer->at;
            *end = timer;
            end = &timer->next;
        } else
            enter_again(clock, timer);
    }
    *end = NULL;
    return kept;
}

/* The timers of the present tick leave their slot, sorted. */
static void open_tick(struct clock *clock)
{
    uint32_t slot = slot_of(clock->tick, 0);
    struct timer *first = keep_present(clock, empty_slot(&clock->wheels[0], slot));
    clock->present = first && first->next ? timers_sort(first) : first;
    if (clock->prefetch) {
        foresee_first(clock);
        if (clock->ahead_slot <= slot) {
            clock->ahead_slot = slot + 1;
            clock->ahead = NULL;
        }
    }
}

/* Goes to the next tick of this turn that has timers, which may be the present one again, unless it
 * is after the tick `until`. False when there is none. */
static inline bool next_tick(struct clock *clock, uint64_t until)
{
    uint32_t slot = next_slot(&clock->wheels[0], slot_of(clock->tick, 0));
    uint64_t tick = clock->tick >> SLOT_BITS << SLOT_BITS | slot;
    if (slot == SLOTS || tick > until)
        return false;
    clock->tick = tick;
    return true;
}

/* Removes the first of the present timers. */
static inline struct timer *take_present(struct clock *clock)
{
    struct timer *timer = clock->present;
    clock->present = timer->next;
    has_left_present(clock, timer);
    if (clock->prefetch) {
        foresee_next(clock);
        look_ahead(clock);
    }
    return timer;
}

/* Removes and returns the next timer that is due by `until`; NULL: none. */
static inline struct timer *take_next(struct clock *clock, picoseconds until)
{
    for (;;) {
        const struct timer *next = clock->present;
        if (next && !is_due_as_queued(next))
            enter_again(clock, take_present(clock));
        else if (next)
            return next->at <= until ? take_present(clock) : NULL;
        else if (next_tick(clock, tick_of(until)))
            open_tick(clock);
        else if (!next_turn(clock, tick_of(until)))
            return NULL;
    }
}

uint64_t clock_run_until(struct clock *clock, picoseconds until)
{
    uint64_t fired = 0;
    for (struct timer *timer; (timer = take_next(clock, until)); fired++) {
        clock->now = timer->at;
        timer->at = timer->queued_at = NEVER;
        timer->fire(timer, clock->now);
    }
    if (until > clock->now)
        clock->now = until;
    return fired;
}

/* When the first of the present timers is due. Those before it that are cancelled, or set to later,
 * go where they belong. NEVER: there is none. */
static picoseconds earliest_present(struct clock *clock)
{
    for (const struct timer *next; (next = clock->present);) {
        if (is_due_as_queued(next))
            return next->at;
        enter_again(clock, take_present(clock));
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

/* Whether a timer that is due at `at` may stay in this slot. */
static bool fits_slot(const struct clock *clock, int number, uint32_t slot, picoseconds at)
{
    uint64_t tick = tick_of(at);
    bool on_wheel = number ? wheel_of(clock, tick) == number : tick - clock->tick < SLOTS;
    return on_wheel && slot_of(tick, number) == slot;
}

/* When the first timer of a wheel, from a slot on, is due; NEVER: there is none. Where all of a
 * slot's timers are set to later or cancelled, they go where they belong. */
static picoseconds earliest_from(struct clock *clock, int number, uint32_t first_slot)
{
    struct wheel *wheel = &clock->wheels[number];
    uint32_t slot;
    while ((slot = next_slot(wheel, first_slot)) != SLOTS) {
        picoseconds earliest = earliest_of(wheel->first[slot]);
        if (fits_slot(clock, number, slot, earliest))
            return earliest;
        spread(clock, wheel, slot);
    }
    return NEVER;
}

/* Timers of the next turn of wheel 0 are on that wheel, in the slots before the present one, and on
 * the next. */
picoseconds clock_next_deadline(struct clock *clock)
{
    picoseconds soonest = earliest_present(clock);
    if (soonest == NEVER)
        soonest = earliest_from(clock, 0, slot_of(clock->tick, 0));
    if (soonest != NEVER)
        return soonest;
    picoseconds next_turn = earliest_from(clock, 0, 0), later = NEVER;
    for (int number = 1; number < WHEELS && later == NEVER; number++)
        later = earliest_from(clock, number, slot_of(clock->tick, number));
    return next_turn < later ? next_turn : later;
}

/* ---- timers -------------------------------------------------------------------- */

/* The classes of timers, in their order at one instant: the highest bits of `order`. The rest is
 * enough for 10 million timers a second for three years. The lowest bits of a node's own timers
 * say that they are in the background, and that they are upkeep. */
#define CLASS_BITS 2
#define COMMON (UINT64_C(0) << (ORDER_BITS - CLASS_BITS))
#define ARRIVAL (UINT64_C(1) << (ORDER_BITS - CLASS_BITS))
#define OWN (UINT64_C(2) << (ORDER_BITS - CLASS_BITS))
#define BACKGROUND UINT64_C(1)
#define UPKEEP UINT64_C(2)
#define KIND_BITS 2

static inline void set(struct clock *clock, struct timer *timer, picoseconds at, uint64_t order)
{
    assert(at >= clock->now && at != NEVER);
    timer->at = at;
    timer->order = order;
    if (timer->queued_at != NEVER) {
        if (at > timer->queued_at)
            return;
        leave(clock, timer);
    }
    enter(clock, timer);
}

void timer_set(struct clock *clock, struct timer *timer, picoseconds at)
{
    set(clock, timer, at, OWN | clock->order++ << KIND_BITS);
}

void timer_set_background(struct clock *clock, struct timer *timer, picoseconds at)
{
    set(clock, timer, at, OWN | clock->order++ << KIND_BITS | BACKGROUND);
}

void timer_set_upkeep(struct clock *clock, struct timer *timer, picoseconds at)
{
    set(clock, timer, at, OWN | clock->order++ << KIND_BITS | BACKGROUND | UPKEEP);
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

/* What `ahead` points to may still lead to the timer. */
void timer_remove(struct clock *clock, struct timer *timer)
{
    timer_cancel(timer);
    clock->ahead = NULL;
    if (timer->queued_at != NEVER)
        leave(clock, timer);
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

/* ---- all timers ----------------------------------------------------------------- */

/* Calls `look` for every list of timers, until it returns true. Returns whether it has. */
static bool any_list(const struct clock *clock,
                     bool (*look)(const struct timer *first, void *state), void *state)
{
    if (look(clock->present, state))
        return true;
    for (int number = 0; number < WHEELS; number++) {
        const struct wheel *wheel = &clock->wheels[number];
        for (uint32_t slot = 0; (slot = next_slot(wheel, slot)) != SLOTS;) {
            if (look(wheel->first[slot], state))
                return true;
            if (++slot == SLOTS)
                break;
        }
    }
    return false;
}

static bool list_has_work(const struct timer *first, void *state)
{
    (void)state;
    for (const struct timer *timer = first; timer; timer = timer->next)
        if (timer->at != NEVER && (timer->order & OWN) && !(timer->order & BACKGROUND))
            return true;
    return false;
}

bool clock_has_work(const struct clock *clock)
{
    return any_list(clock, list_has_work, NULL);
}

picoseconds common_multiple(picoseconds one, picoseconds other)
{
    picoseconds divisor = one;
    if (one == NEVER || other == NEVER)
        return NEVER;
    for (picoseconds rest = other; rest;) {
        picoseconds next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return one / divisor > PS_PER_S / other ? NEVER : one / divisor * other;
}

/* Upkeep and arrivals. */
static bool goes_on(const struct timer *timer)
{
    return timer->order & OWN ? timer->order & UPKEEP : timer->order & ARRIVAL;
}

struct search {
    const struct timer *besides;
    picoseconds soonest;
};

static bool find_event(const struct timer *first, void *state)
{
    struct search *search = state;
    for (const struct timer *timer = first; timer; timer = timer->next)
        if (timer->at < search->soonest && timer != search->besides && !goes_on(timer))
            search->soonest = timer->at;
    return false;
}

picoseconds clock_next_event(const struct clock *clock, const struct timer *besides)
{
    struct search search = {.besides = besides, .soonest = NEVER};
    any_list(clock, find_event, &search);
    return search.soonest;
}

static bool find_last_upkeep(const struct timer *first, void *last)
{
    for (const struct timer *timer = first; timer; timer = timer->next)
        if (timer->at != NEVER && goes_on(timer) && timer->at > *(picoseconds *)last)
            *(picoseconds *)last = timer->at;
    return false;
}

picoseconds clock_last_upkeep(const struct clock *clock)
{
    picoseconds last = 0;
    any_list(clock, find_last_upkeep, &last);
    return last;
}

/* Those that a node sets again and again are set later than all others that are set now. */
static void set_after_skip(struct clock *clock, struct timer *timer, picoseconds span)
{
    uint64_t order = timer->order;
    timer->queued_at = NEVER;
    if (!goes_on(timer))
        set(clock, timer, clock->now, order);
    else if (order & OWN)
        timer_set_upkeep(clock, timer, timer->at + span);
    else
        set(clock, timer, timer->at + span, order);
}

void clock_skip(struct clock *clock, picoseconds span)
{
    struct timer *due = NULL, **end = &due;
    for (struct timer *timer; (timer = take_next(clock, clock->now + span));) {
        *end = timer;
        end = &timer->next;
    }
    *end = NULL;
    clock->now += span;
    for (struct timer *timer = due, *next; timer; timer = next) {
        next = timer->next;
        set_after_skip(clock, timer, span);
    }
}
