/* Timers wait on wheels and are put in order only when their time is near.
 *
 *     wheel 0   a slot a tick              | . . x . . x x . . |
 *     wheel 1   a slot a turn of wheel 0   | . x . . . . . . . |
 *     wheel 2   a slot a turn of wheel 1   ...
 *
 * Setting a timer puts it into the slot of its tick, or, when that lies beyond the
 * present turn, into the slot of its turn; when the turn comes its timers are
 * spread over the wheel below. When a tick comes its few timers go into a heap that
 * fires them in order of their due times. So the cost of a timer does not grow
 * with the number of timers (Varghese and Lauck, SOSP'87).
 *
 * A timer is never taken out of where it is queued: one that is cancelled, or set
 * to later, stays there, and what has become of it is looked at when its place comes
 * up. That makes both free, and most timers that are moved (retransmission, pause)
 * are moved to later again and again. Only a timer that is set to earlier than
 * it is queued for is looked for, which is rare.
 *
 * While a timer fires its entry stays on top of the heap, free to be overwritten. */
#include "clock.h"

#include <assert.h>
#include <stdlib.h>

enum { WAYS = 4, WORD = 64 };

struct clock_entry {
    picoseconds at;
    uint64_t order;
    struct timer *timer;
};

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
    *timer = (struct timer){.at = NEVER, .queued_at = NEVER, .fire = fire};
    clock->capacity++;
    /* Grown in powers of two, when the count of timers reaches one. */
    if ((clock->capacity & (clock->capacity - 1)) == 0) {
        size_t room = 2 * (size_t)clock->capacity;
        struct clock_entry *heap = realloc(clock->heap, room * sizeof *heap);
        if (heap)
            clock->heap = heap;
        else
            clock->out_of_memory = true;
    }
}

static bool due_before(const struct clock_entry *a, const struct clock_entry *b)
{
    /* One comparison of both keys, without a branch. */
    unsigned __int128 left = (unsigned __int128)(uint64_t)a->at << 64 | a->order;
    unsigned __int128 right = (unsigned __int128)(uint64_t)b->at << 64 | b->order;
    return left < right;
}

static void sift_up(struct clock *clock, struct clock_entry entry, uint32_t slot)
{
    struct clock_entry *heap = clock->heap;
    while (slot > 0) {
        uint32_t parent = (slot - 1) / WAYS;
        if (!due_before(&entry, &heap[parent]))
            break;
        heap[slot] = heap[parent];
        slot = parent;
    }
    heap[slot] = entry;
}

static uint32_t least_of(const struct clock_entry *heap, uint32_t first, uint32_t end)
{
    uint32_t least = first;
    for (uint32_t child = first + 1; child < end; child++)
        least = due_before(&heap[child], &heap[least]) ? child : least;
    return least;
}

/* Puts the entry in the place of the first one. */
static void sift_down(struct clock *clock, struct clock_entry entry)
{
    struct clock_entry *heap = clock->heap;
    uint32_t slot = 0;
    for (;;) {
        uint32_t first = slot * WAYS + 1;
        if (first >= clock->count)
            break;
        uint32_t end = first + WAYS < clock->count ? first + WAYS : clock->count;
        uint32_t least = least_of(heap, first, end);
        if (!due_before(&heap[least], &entry))
            break;
        heap[slot] = heap[least];
        slot = least;
    }
    heap[slot] = entry;
}

static void heap_insert(struct clock *clock, struct timer *timer)
{
    struct clock_entry entry = {timer->at, timer->order, timer};
    if (clock->top_is_free) {
        clock->top_is_free = false;
        sift_down(clock, entry);
    } else {
        assert(clock->count < clock->capacity);
        sift_up(clock, entry, clock->count++);
    }
}

static void heap_remove_top(struct clock *clock)
{
    clock->top_is_free = false;
    if (--clock->count)
        sift_down(clock, clock->heap[clock->count]);
}

/* Moves a timer's entry forward. */
static void heap_advance(struct clock *clock, struct timer *timer)
{
    uint32_t slot = clock->top_is_free ? 1 : 0;
    while (clock->heap[slot].timer != timer)
        slot++;
    assert(slot < clock->count);
    sift_up(clock, (struct clock_entry){timer->at, timer->order, timer}, slot);
}

/* ---- the wheels ------------------------------------------------------------- */

static uint64_t tick_of(picoseconds at)
{
    return (uint64_t)at >> TICK_BITS;
}

static uint32_t slot_of(uint64_t tick, int wheel)
{
    return tick >> (wheel * SLOT_BITS) & (SLOTS - 1);
}

/* The lowest wheel on whose present turn the tick lies. */
static int wheel_of(const struct clock *clock, uint64_t tick)
{
    uint64_t differs = (tick ^ clock->tick) >> SLOT_BITS;
    return differs ? 1 + (WORD - 1 - __builtin_clzll(differs)) / SLOT_BITS : 0;
}

static void wheel_insert(struct clock *clock, struct timer *timer, uint64_t tick)
{
    int number = wheel_of(clock, tick);
    struct wheel *wheel = &clock->wheels[number];
    uint32_t slot = slot_of(tick, number);
    timer->next = wheel->slots[slot];
    wheel->slots[slot] = timer;
    wheel->used[slot / WORD] |= UINT64_C(1) << slot % WORD;
    wheel->used_words |= UINT64_C(1) << slot / WORD;
}

/* All timers of a slot, which is empty then. */
static struct timer *wheel_take(struct wheel *wheel, uint32_t slot)
{
    struct timer *timers = wheel->slots[slot];
    wheel->slots[slot] = NULL;
    wheel->used[slot / WORD] &= ~(UINT64_C(1) << slot % WORD);
    if (!wheel->used[slot / WORD])
        wheel->used_words &= ~(UINT64_C(1) << slot / WORD);
    return timers;
}

/* The first used slot from `slot` on; SLOTS when there is none. */
static uint32_t wheel_next(const struct wheel *wheel, uint32_t slot)
{
    uint32_t word = slot / WORD;
    uint64_t used = wheel->used[word] >> slot % WORD;
    if (used)
        return slot + (uint32_t)__builtin_ctzll(used);
    uint64_t words = word + 1 < WORD ? wheel->used_words >> (word + 1) : 0;
    if (!words)
        return SLOTS;
    word += 1 + (uint32_t)__builtin_ctzll(words);
    return word * WORD + (uint32_t)__builtin_ctzll(wheel->used[word]);
}

static void wheel_remove(struct clock *clock, const struct timer *timer)
{
    uint64_t tick = tick_of(timer->queued_at);
    int number = wheel_of(clock, tick);
    struct timer **link = &clock->wheels[number].slots[slot_of(tick, number)];
    while (*link != timer)
        link = &(*link)->next;
    *link = timer->next;
}

/* ---- both -------------------------------------------------------------------- */

static void enter(struct clock *clock, struct timer *timer)
{
    uint64_t tick = tick_of(timer->at);
    timer->queued_at = timer->at;
    if (tick < clock->tick)
        heap_insert(clock, timer);
    else
        wheel_insert(clock, timer, tick);
}

static void advance(struct clock *clock, struct timer *timer)
{
    if (tick_of(timer->queued_at) < clock->tick) {
        heap_advance(clock, timer);
        timer->queued_at = timer->at;
    } else {
        wheel_remove(clock, timer);
        enter(clock, timer);
    }
}

/* Timers that were queued for a time that is near now: each goes where it belongs. */
static void enter_again(struct clock *clock, struct timer *timers)
{
    for (struct timer *timer = timers, *next; timer; timer = next) {
        next = timer->next;
        timer->queued_at = NEVER;
        if (timer->at != NEVER)
            enter(clock, timer);
    }
}

/* Where a turn of lower wheels begins, the timers that are due in it go there. */
static void go_to_tick(struct clock *clock, uint64_t tick)
{
    clock->tick = tick;
    for (int wheel = 1; wheel < WHEELS && slot_of(tick, wheel - 1) == 0; wheel++)
        enter_again(clock, wheel_take(&clock->wheels[wheel], slot_of(tick, wheel)));
}

/* Brings the timers of the next tick that has any into the heap, unless that tick
 * comes after `last`. False when there is none. */
static bool load_tick(struct clock *clock, uint64_t last)
{
    for (int number = 0; number < WHEELS; number++) {
        struct wheel *wheel = &clock->wheels[number];
        uint32_t slot = wheel_next(wheel, slot_of(clock->tick, number));
        if (slot == SLOTS)
            continue;
        int shift = number * SLOT_BITS;
        uint64_t tick = (clock->tick >> shift >> SLOT_BITS << SLOT_BITS | slot) << shift;
        if (tick > last)
            return false;
        if (number == 0) {
            struct timer *timers = wheel_take(wheel, slot);
            go_to_tick(clock, tick + 1);
            enter_again(clock, timers);
            return true;
        }
        go_to_tick(clock, tick);
        number = -1; /* again from the first wheel */
    }
    return false;
}

/* ---- timers -------------------------------------------------------------------- */

void timer_set(struct clock *clock, struct timer *timer, picoseconds at)
{
    assert(at >= clock->now && at != NEVER);
    timer->at = at;
    timer->order = clock->order++;
    if (timer->queued_at == NEVER)
        enter(clock, timer);
    else if (at < timer->queued_at)
        advance(clock, timer);
}

void timer_cancel(struct clock *clock, struct timer *timer)
{
    (void)clock;
    timer->at = NEVER;
}

/* Brings a timer on top of the heap that is due when its entry says; NULL when there is none. */
static struct timer *settle_top(struct clock *clock)
{
    while (clock->count) {
        const struct clock_entry *top = &clock->heap[0];
        struct timer *timer = top->timer;
        if (top->order == timer->order && timer->at != NEVER)
            return timer;
        timer->queued_at = NEVER;
        clock->top_is_free = true;
        if (timer->at != NEVER)
            enter(clock, timer);
        if (clock->top_is_free)
            heap_remove_top(clock);
    }
    return NULL;
}

/* The next timer, when it is due by `until`. */
static struct timer *next_timer(struct clock *clock, picoseconds until)
{
    struct timer *timer;
    do
        timer = settle_top(clock);
    while (!timer && load_tick(clock, tick_of(until)));
    return timer && timer->at <= until ? timer : NULL;
}

picoseconds clock_next_deadline(struct clock *clock)
{
    const struct timer *timer = next_timer(clock, NEVER);
    return timer ? timer->at : NEVER;
}

uint64_t clock_run_until(struct clock *clock, picoseconds until)
{
    uint64_t fired = 0;
    for (struct timer *timer; (timer = next_timer(clock, until)); fired++) {
        clock->now = timer->at;
        timer->at = timer->queued_at = NEVER;
        clock->top_is_free = true;
        timer->fire(timer, clock->now);
        if (clock->top_is_free)
            heap_remove_top(clock);
    }
    if (until > clock->now)
        clock->now = until;
    return fired;
}
