/* Applies the commands of standard input, one per line, to a clock and prints the results.
 *
 *     own TIMER AT PERIOD    due at AT, and from then on every PERIOD ps; 0: once
 *     background TIMER AT PERIOD, upkeep TIMER AT PERIOD    the same in the background, as upkeep
 *     common TIMER AT PERIOD, arrival TIMER AT PERIOD    the same for these classes of timers; the
 *                                                        timer's number is that of the port
 *     cancel TIMER
 *     run UNTIL              prints `TIMER NOW` for each timer that fires
 *     deadline               prints `next AT`
 *     event                  prints `event AT`: the next that is not upkeep or an arrival
 *     last                   prints `last AT`: of upkeep and arrivals
 *     skip SPAN              lets it pass at once
 *     work                   prints `work 0` or `work 1`
 *     prefetch               from now on prints `soon TIMER AWAY` for each timer prefetched */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/clock.h"

enum { TIMERS = 1024 };

struct alarm {
    struct timer timer;
    picoseconds period;
    char class[12];
};

static struct clock clock_;
static struct alarm alarms[TIMERS];

static void set(struct alarm *alarm, picoseconds at)
{
    if (strcmp(alarm->class, "common") == 0)
        timer_set_common(&clock_, &alarm->timer, at);
    else if (strcmp(alarm->class, "arrival") == 0)
        timer_set_arrival(&clock_, &alarm->timer, at, (uint32_t)(alarm - alarms));
    else if (strcmp(alarm->class, "upkeep") == 0)
        timer_set_upkeep(&clock_, &alarm->timer, at);
    else if (strcmp(alarm->class, "background") == 0)
        timer_set_background(&clock_, &alarm->timer, at);
    else
        timer_set(&clock_, &alarm->timer, at);
}

static void fire(struct timer *timer, picoseconds now)
{
    struct alarm *alarm = container_of(timer, struct alarm, timer);
    printf("%td %" PRId64 "\n", alarm - alarms, now);
    if (alarm->period)
        set(alarm, now + alarm->period);
}

static void prefetch(const struct timer *timer, unsigned events_away)
{
    printf("soon %td %u\n", container_of(timer, struct alarm, timer) - alarms, events_away);
}

static void obey(const char *command)
{
    unsigned number;
    picoseconds at, period;
    char class[12];
    if (sscanf(command, "%11s %u %" SCNd64 " %" SCNd64, class, &number, &at, &period) == 4) {
        assert(number < TIMERS);
        alarms[number].period = period;
        strcpy(alarms[number].class, class);
        set(&alarms[number], at);
    } else if (sscanf(command, "cancel %u", &number) == 1) {
        assert(number < TIMERS);
        timer_cancel(&alarms[number].timer);
    } else if (sscanf(command, "run %" SCNd64, &at) == 1) {
        clock_run_until(&clock_, at);
    } else if (sscanf(command, "skip %" SCNd64, &at) == 1) {
        clock_skip(&clock_, at);
    } else if (strncmp(command, "last", 4) == 0) {
        printf("last %" PRId64 "\n", clock_last_upkeep(&clock_));
    } else if (strncmp(command, "event", 5) == 0) {
        printf("event %" PRId64 "\n", clock_next_event(&clock_, NULL));
    } else if (strncmp(command, "prefetch", 7) == 0) {
        clock_.prefetch = prefetch;
    } else if (strncmp(command, "work", 4) == 0) {
        printf("work %d\n", clock_has_work(&clock_));
    } else {
        assert(strncmp(command, "deadline", 8) == 0);
        printf("next %" PRId64 "\n", clock_next_deadline(&clock_));
    }
}

int main(void)
{
    char line[128];
    clock_init(&clock_);
    for (int i = 0; i < TIMERS; i++)
        timer_init(&alarms[i].timer, fire);
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
