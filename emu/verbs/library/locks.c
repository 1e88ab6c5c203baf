/* Waits for locks, condition variables, semaphores and ends of threads end at emulated times.
 *
 *     condition variable   an alarm wakes those who wait for it, which any of them may expect
 *     others               in slices (slices.c)
 *
 * Those of C11 (mtx_t, cnd_t) are those of POSIX by other names. */
#define _GNU_SOURCE /* pthread_cond_clockwait */

#include <semaphore.h>
#include <threads.h>

#include "library.h"

/* When a wait up to this time of a clock ends. */
static int64_t end_of(clockid_t clock, const struct timespec *at)
{
    return as_ns(at) - origin_ns(clock);
}

static bool is_awaited(clockid_t clock, const struct timespec *at)
{
    return is_emulated() && is_followed(clock) && is_valid(at);
}

/* ---- condition variables ------------------------------------------------------------------- */

struct condition_alarm {
    struct alarm alarm;
    pthread_cond_t *condition;
};

static void wake(struct alarm *alarm)
{
    pthread_cond_broadcast(((struct condition_alarm *)alarm)->condition);
}

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns)
{
    struct condition_alarm wait = {.alarm.ring = wake, .condition = condition};
    int error;
    set_alarm(&wait.alarm, until_ns);
    pthread_cleanup_push(clear_alarm, &wait.alarm);
    error = pthread_cond_wait(condition, mutex);
    pthread_cleanup_pop(1);
    return error || !wait.alarm.has_rung ? error : ETIMEDOUT;
}

/* As glibc has it. */
static clockid_t clock_of(const pthread_cond_t *condition)
{
    return condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* dlsym would find the function of LinuxThreads. */
static int real_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                               const struct timespec *at)
{
    static __typeof__(&pthread_cond_timedwait) real;
    if (!real)
        real = (__typeof__(real))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real(condition, mutex, at);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *at)
{
    if (!is_awaited(clock, at))
        return REAL(pthread_cond_clockwait)(condition, mutex, clock, at);
    return wait_for_condition(condition, mutex, end_of(clock, at));
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *at)
{
    clockid_t clock = clock_of(condition);
    if (!is_awaited(clock, at))
        return real_cond_timedwait(condition, mutex, at);
    return wait_for_condition(condition, mutex, end_of(clock, at));
}

/* ---- semaphores ----------------------------------------------------------------------------- */

static int attempt_semaphore(void *semaphore, const struct timespec *at)
{
    return REAL(sem_timedwait)(semaphore, at) == 0 ? 0 : errno;
}

static int wait_for_semaphore(sem_t *semaphore, int64_t until_ns)
{
    int error = wait_in_slices(attempt_semaphore, semaphore, until_ns);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict at)
{
    if (!is_awaited(CLOCK_REALTIME, at))
        return REAL(sem_timedwait)(semaphore, at);
    return wait_for_semaphore(semaphore, end_of(CLOCK_REALTIME, at));
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                         const struct timespec *restrict at)
{
    if (!is_awaited(clock, at))
        return REAL(sem_clockwait)(semaphore, clock, at);
    return wait_for_semaphore(semaphore, end_of(clock, at));
}

/* ---- locks ---------------------------------------------------------------------------------- */

static int attempt_mutex(void *mutex, const struct timespec *at)
{
    return REAL(pthread_mutex_timedlock)(mutex, at);
}

static int attempt_read(void *lock, const struct timespec *at)
{
    return REAL(pthread_rwlock_timedrdlock)(lock, at);
}

static int attempt_write(void *lock, const struct timespec *at)
{
    return REAL(pthread_rwlock_timedwrlock)(lock, at);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at)
{
    if (!is_awaited(CLOCK_REALTIME, at))
        return attempt_mutex(mutex, at);
    return wait_in_slices(attempt_mutex, mutex, end_of(CLOCK_REALTIME, at));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *at)
{
    if (!is_awaited(clock, at))
        return REAL(pthread_mutex_clocklock)(mutex, clock, at);
    return wait_in_slices(attempt_mutex, mutex, end_of(clock, at));
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at)
{
    if (!is_awaited(CLOCK_REALTIME, at))
        return attempt_read(lock, at);
    return wait_in_slices(attempt_read, lock, end_of(CLOCK_REALTIME, at));
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at)
{
    if (!is_awaited(CLOCK_REALTIME, at))
        return attempt_write(lock, at);
    return wait_in_slices(attempt_write, lock, end_of(CLOCK_REALTIME, at));
}

/* ---- ends of threads ------------------------------------------------------------------------ */

struct join {
    pthread_t thread;
    void **result;
};

static int attempt_join(void *of, const struct timespec *at)
{
    const struct join *join = of;
    return REAL(pthread_timedjoin_np)(join->thread, join->result, at);
}

EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
                                const struct timespec *at)
{
    struct join join = {.thread = thread, .result = result};
    if (!at || !is_awaited(clock, at))
        return REAL(pthread_clockjoin_np)(thread, result, clock, at);
    return wait_in_slices(attempt_join, &join, end_of(clock, at));
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *at)
{
    return pthread_clockjoin_np(thread, result, CLOCK_REALTIME, at);
}

/* ---- C11 ------------------------------------------------------------------------------------ */

static int as_c11(int error)
{
    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict at)
{
    return as_c11(pthread_mutex_timedlock((pthread_mutex_t *)mutex, at));
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                         const struct timespec *restrict at)
{
    return as_c11(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, at));
}
