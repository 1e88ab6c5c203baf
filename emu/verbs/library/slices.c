/* Waits in the kernel that end at emulated times: the real call, again and again with short real
 * time-outs. An alarm says that the next of these is the end, and emulated time stands until then.
 */
#include "library.h"

enum { FIRST_SLICE_NS = 100000, LONGEST_SLICE_NS = 10000000 };

static void stand_still(struct alarm *alarm)
{
    (void)alarm;
    hold_time();
}

static struct timespec real_time_in(int64_t ns)
{
    struct timespec now;
    real_clock_gettime(CLOCK_REALTIME, &now);
    return as_timespec(as_ns(&now) + ns);
}

static void end_slices(void *alarm)
{
    clear_alarm(alarm);
    if (((struct alarm *)alarm)->has_rung)
        release_time();
}

int wait_in_slices(attempt *attempt, void *of, int64_t until_ns)
{
    struct alarm end = {.ring = stand_still};
    int error;
    set_alarm(&end, until_ns);
    pthread_cleanup_push(end_slices, &end);
    for (int64_t slice_ns = FIRST_SLICE_NS;;) {
        struct timespec at = real_time_in(slice_ns);
        error = attempt(of, &at);
        if (error != ETIMEDOUT || __atomic_load_n(&end.has_rung, __ATOMIC_SEQ_CST))
            break;
        slice_ns = slice_ns < LONGEST_SLICE_NS ? 2 * slice_ns : slice_ns;
    }
    pthread_cleanup_pop(1);
    return error;
}
