/* The machine's clocks, in nanoseconds. */
#ifndef EMU_DRIVER_WALLTIME_H
#define EMU_DRIVER_WALLTIME_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static inline int64_t timespec_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

static inline int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return timespec_ns(now);
}

#endif
