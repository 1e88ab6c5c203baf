/* Threads of the program that wait for emulated time (core/uverbs/rings.h).
 *
 * On the exact clock emulated time stands while any thread computes. So a thread that finds nothing
 * to do says that it waits, and sleeps until the NICs have something for it. */
#define _GNU_SOURCE /* syscall */

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define NS_PER_S INT64_C(1000000000)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread struct uverbs_thread *own;
static __thread struct uverbs_session *session;

/* ---- the thread's place in the session ---------------------------------------------------- */

static void stop_running(void)
{
    const struct connection *nics = connection();
    uint64_t one = 1;
    if (__atomic_sub_fetch(&session->running, 1, __ATOMIC_SEQ_CST) == 0 && nics) {
        ssize_t written = write(nics->bell_fd, &one, sizeof one);
        (void)written;
    }
}

static void thread_ends(void *thread)
{
    (void)thread;
    __atomic_store_n(&own->tid, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&own->state, UVERBS_NO_THREAD, __ATOMIC_SEQ_CST);
    stop_running();
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

/* Takes the first free place. A thread without one counts as one that computes nothing. */
static void take_place(struct uverbs_session *of)
{
    for (uint32_t i = 0; i < UVERBS_THREADS; i++) {
        uint32_t nobody = UVERBS_NO_THREAD;
        if (!__atomic_compare_exchange_n(&of->threads[i].state, &nobody, UVERBS_RUNS, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            continue;
        own = &of->threads[i];
        session = of;
        __atomic_store_n(&own->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&of->running, 1, __ATOMIC_SEQ_CST);
        uint32_t slots = __atomic_load_n(&of->thread_slots, __ATOMIC_SEQ_CST);
        while (slots < i + 1 &&
               !__atomic_compare_exchange_n(&of->thread_slots, &slots, i + 1, false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
        pthread_once(&once, make_key);
        pthread_setspecific(key, own);
        trap_counter();
        return;
    }
}

void is_active(void)
{
    const struct connection *nics = connection();
    if (!nics)
        return;
    if (!own || session != nics->session)
        take_place(nics->session);
    __atomic_add_fetch(&nics->session->activity, 1, __ATOMIC_RELAXED);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

void wait_for_news(int64_t until_ns)
{
    is_active();
    if (!own)
        return;
    uint32_t wakes = __atomic_load_n(&own->wakes, __ATOMIC_SEQ_CST);
    __atomic_store_n(&own->until_ns, until_ns, __ATOMIC_RELEASE);
    __atomic_store_n(&own->state, UVERBS_WAITS, __ATOMIC_SEQ_CST);
    stop_running();
    while (__atomic_load_n(&own->wakes, __ATOMIC_SEQ_CST) == wakes)
        syscall(SYS_futex, &own->wakes, FUTEX_WAIT, wakes, NULL, NULL, 0);
}

int64_t emulated_ns(void)
{
    const struct connection *nics = connection();
    if (!nics)
        return 0;
    if (nics->clock.is_exact)
        return __atomic_load_n(&nics->time->now_ns, __ATOMIC_ACQUIRE);
    struct timespec now;
    real_clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t passed_ns = now.tv_sec * NS_PER_S + now.tv_nsec - nics->clock.from_ns;
    return (int64_t)((double)passed_ns / nics->clock.slowdown);
}
