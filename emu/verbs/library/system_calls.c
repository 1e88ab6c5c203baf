/* System calls that programs make by syscall(): what libc has no function for, or what they do
 * themselves. libstdc++ waits for a std::future by the futex.
 *
 *     clocks, sleeps                     as libc's functions for them
 *     waits for a futex with a time-out  end at an emulated time
 *     closing and moving descriptors     as libc's functions for them (kept_files.c)
 *     fork, clone of a process           as fork (forks.c)
 *
 * Others go to the kernel as they are; so do time-outs of futexes with priority inheritance. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "library.h"

enum { ARGUMENTS = 6 };

static long pass_on(long number, const long *of)
{
    return REAL(syscall)(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

static void *pointer(long argument)
{
    return (void *)argument; // NOLINT: an argument of the program
}

/* ---- futexes --------------------------------------------------------------------------------- */

struct futex {
    void *word;
    long flags; /* FUTEX_PRIVATE_FLAG */
    long value, bits;
    bool has_waited;
};

/* The value changes between two slices only if somebody would have woken this thread. */
static int attempt_futex(void *of, const struct timespec *at)
{
    struct futex *wait = of;
    bool has_waited = wait->has_waited;
    wait->has_waited = true;
    if (REAL(syscall)(SYS_futex, wait->word, wait->flags | FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME,
                      wait->value, at, NULL, wait->bits) == 0)
        return 0;
    return errno == EAGAIN && has_waited ? 0 : errno;
}

static int64_t end_of_futex(long operation, const struct timespec *timeout)
{
    bool is_relative = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT;
    clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    return as_ns(timeout) + (is_relative ? emulated_ns() : -origin_ns(clock));
}

static long wait_for_futex(const long *of)
{
    long command = of[1] & FUTEX_CMD_MASK;
    bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    const struct timespec *timeout = pointer(of[3]);
    if (!waits || !timeout || !is_valid(timeout))
        return pass_on(SYS_futex, of);
    struct futex wait = {.word = pointer(of[0]),
                         .flags = of[1] & FUTEX_PRIVATE_FLAG,
                         .value = of[2],
                         .bits = command == FUTEX_WAIT ? (long)FUTEX_BITSET_MATCH_ANY : of[5]};
    int error = wait_in_slices(attempt_futex, &wait, end_of_futex(of[1], timeout));
    if (error)
        errno = error;
    return error ? -1 : 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static long sleep_by_clock(const long *of)
{
    int error = clock_nanosleep((clockid_t)of[0], (int)of[1], pointer(of[2]), pointer(of[3]));
    if (error)
        errno = error;
    return error ? -1 : 0;
}

static long call_in_emulated_time(long number, const long *of)
{
    switch (number) {
    case SYS_futex:
        return wait_for_futex(of);
    case SYS_nanosleep:
        return nanosleep(pointer(of[0]), pointer(of[1]));
    case SYS_clock_nanosleep:
        return sleep_by_clock(of);
    case SYS_clock_gettime:
        return clock_gettime((clockid_t)of[0], pointer(of[1]));
    case SYS_gettimeofday:
        return gettimeofday(pointer(of[0]), NULL);
    default:
        return pass_on(number, of);
    }
}

EXPORT long syscall(long number, ...)
{
    long of[ARGUMENTS];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++)
        of[i] = va_arg(list, long);
    va_end(list);
    switch (number) {
    case SYS_close:
        return close((int)of[0]);
#ifdef SYS_dup2 /* not on arm64 */
    case SYS_dup2:
        return dup2((int)of[0], (int)of[1]);
#endif
    case SYS_dup3:
        return dup3((int)of[0], (int)of[1], (int)of[2]);
    case SYS_close_range:
        return close_range((unsigned)of[0], (unsigned)of[1], (int)of[2]);
    default:
        if (is_fork(number, of))
            return fork_by_call(number, of);
        return is_emulated() ? call_in_emulated_time(number, of) : pass_on(number, of);
    }
}
