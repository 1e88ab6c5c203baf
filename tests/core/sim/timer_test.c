/* Timers that are taken off their clock. */
#include <string.h>

#include "testbench.h"

enum { TIMERS = 200 };

struct counted {
    struct timer timer;
    uint32_t fired;
};

static void count(struct timer *timer, picoseconds now)
{
    (void)now;
    container_of(timer, struct counted, timer)->fired++;
}

static void look(const struct timer *timer, unsigned events_away)
{
    EXPECT(timer->fire == count && events_away > 0);
}

/* Every other timer is removed, some of them after they were cancelled or set to later, and their
 * memory is freed. `spacing`: between two timers. */
static void expect_others_fire(picoseconds spacing, picoseconds removed_at)
{
    struct clock *clock = calloc(1, sizeof *clock);
    struct counted *timers[TIMERS];
    uint32_t fired = 0;
    clock_init(clock);
    clock->prefetch = look;
    for (int i = 0; i < TIMERS; i++) {
        timers[i] = calloc(1, sizeof *timers[i]);
        timer_init(&timers[i]->timer, count);
        timer_set(clock, &timers[i]->timer, (i + 1) * spacing);
    }
    clock_run_until(clock, removed_at);
    for (int i = 0; i < TIMERS; i += 2) {
        struct timer *timer = &timers[i]->timer;
        if (i % 4 == 0)
            timer_cancel(timer);
        else if (i % 3 == 0 && timer_is_set(timer))
            timer_set(clock, timer, timer->at + 10 * spacing);
        timer_remove(clock, timer);
        EXPECT(!timer_is_set(timer));
        free(timers[i]);
    }
    EXPECT((clock_next_deadline(clock) == NEVER) == (removed_at >= TIMERS * spacing));
    clock_run_until(clock, PS_PER_S);
    for (int i = 1; i < TIMERS; i += 2) {
        fired += timers[i]->fired;
        free(timers[i]);
    }
    EXPECT_EQUAL(TIMERS / 2, fired);
    free(clock);
}

TEST(clock_forgets_a_removed_timer)
{
    static const picoseconds spacings[] = {1, 500, 10 * PS_PER_NS, 3 * PS_PER_US, 2 * PS_PER_MS};
    for (size_t s = 0; s < sizeof spacings / sizeof *spacings; s++)
        for (int quarter = 0; quarter <= 4; quarter++)
            expect_others_fire(spacings[s], quarter * spacings[s] * TIMERS / 4);
}

MAIN(RUN(clock_forgets_a_removed_timer))
