/* Timers of a tick are sorted by merging runs. A list is cut into runs, which rise or fall already,
 * and the runs are merged. There are few: ports do the same things one after the other. */
#include "sim/timer.h"

static bool is_before(const struct timer *one, const struct timer *other)
{
    return timer_key(one) < timer_key(other);
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

struct timer *timers_sort(struct timer *list)
{
    struct timer *run = take_run(&list);
    return list ? merge_runs(run, list) : run;
}
